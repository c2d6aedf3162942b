//! `engram.hash`: the table rows of a token, from its last few token ids.
//!
//! `history[t]` is newest first: the token's own id, the one before, and so on; -1 before the start
//! of the sequence. Walking it, a position is blocked, and all older ones with it, once an id is -1,
//! outside the vocabulary, or the picture's. `c_s` is the compressed id, `map[id]`, or that of the pad
//! id when blocked. With multipliers m: `R_1 = c_0 m_0 xor c_1 m_1`, `R_n = R_{n-1} xor c_n m_n`;
//! column (order n, head h): `(R_n mod prime[n,h]) + offset[n,h]`, offsets being the sums of all
//! earlier primes. Columns are orders outer, heads inner, the shortest order first.
//!
//! All arithmetic is 64-bit and exact; products never overflow for checked descriptors. Compressed
//! ids are what `map` says; a negative one counts as 0. Rows see only themselves. Depends on ids
//! alone, so it may run long before the layer. Source: Engram 4.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`EngramHash`].
    pub struct EngramHashIo {
        /// `[tokens, orders + 1]` i32 token ids, newest first.
        history: In,
        /// `[vocab]` i32, compressed id of each token id.
        map: In,
        /// `[tokens, columns]` i32 rows of the table.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct EngramHash {
        /// Size of the vocabulary.
        pub vocab: u64,
        /// One per history position, odd.
        pub multipliers: Vec<u64>,
        /// `(multipliers - 1) x heads` primes, orders outer.
        pub primes: Vec<u64>,
        /// Token id that stands for no history.
        pub pad: u64,
        /// Token id of picture positions.
        pub picture: u64,
        /// One past the largest compressed id.
        pub classes: u64,
    }
}

impl EngramHash {
    /// Columns of a row.
    pub fn columns(&self) -> u64 {
        self.primes.len() as u64
    }
    /// Rows of the table: the sum of the primes.
    pub fn table_rows(&self) -> u64 {
        self.primes.iter().sum()
    }
}

impl Operator for EngramHash {
    const ID: &'static str = "engram.hash";
    type Io<I, O> = EngramHashIo<I, O>;
    fn check(&self) -> Result<()> {
        let orders = self.multipliers.len().saturating_sub(1);
        require(Self::ID, orders > 0, "needs at least two `multipliers`")?;
        let grid = !self.primes.is_empty() && self.primes.len().is_multiple_of(orders);
        require(Self::ID, grid, "`primes` is not a whole number per order")?;
        let total = self.primes.iter().try_fold(0u64, |a, &p| a.checked_add(p));
        let rows =
            self.primes.iter().all(|p| *p > 1) && total.is_some_and(|t| t <= i32::MAX as u64);
        require(Self::ID, rows, "`primes` do not add up to a table of 31-bit rows")?;
        let products = self
            .multipliers
            .iter()
            .all(|m| self.classes.checked_mul(*m).is_some_and(|p| p <= i64::MAX as u64));
        require(Self::ID, products && self.classes > 0, "`classes x multiplier` passes 63 bits")?;
        require(Self::ID, self.pad < self.vocab, "`pad` is outside the vocabulary")
    }
    fn operands(&self) -> EngramHashIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        let history = [t, Is(self.multipliers.len() as u64)];
        EngramHashIo {
            history: Operand::index(&history, IndexBound::Fixed(self.vocab)),
            map: Operand::index(&[Is(self.vocab)], IndexBound::Fixed(self.classes)),
            y: Operand::new(Enc::I32, &[t, Is(self.columns())]),
        }
    }
}
