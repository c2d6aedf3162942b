//! `kv.store`: rows into cache entries, `cache[at[t]] = record(x[t])`.
//!
//! The record says how a vector becomes bytes, block by block, with the scale rules of
//! [`crate::num::block`]; plain forms store the values as they are. `fp8rope` keeps the last 64
//! values in bf16 and gives the others one UE8M0 scale per 64 (floor 1e-4, limit 448).
//!
//! Roundings: those of the record, once. An f32 row into a quantising record is first rounded to
//! bf16. NaN makes the scale of its block NaN and nothing else.
//! An address of -1, or one outside, stores nothing (padding rows). Two rows must not name the same
//! address. Entries that are not named are untouched.
//! Rows see only themselves. Cost: bytes. Used for window and compressed keys, index keys and the
//! open groups of the compressor. Source: model report 3.5 to 3.7, 4.3.

use crate::Cache;
use crate::ops::prelude::*;

io! {
    /// Operands of [`Store`].
    pub struct StoreIo {
        /// `[tokens, width]`.
        x: In,
        /// `[tokens]` i32 addresses.
        at: In,
        /// `[pages, page_entries]` records.
        cache: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Store {
        /// Target.
        pub cache: Cache,
        /// How `x` is stored: bf16 or f32.
        pub x: Elem,
    }
}

impl Operator for Store {
    const ID: &'static str = "kv.store";
    type Io<I, O> = StoreIo<I, O>;
    fn check(&self) -> Result<()> {
        self.cache.check(Self::ID)?;
        require(Self::ID, matches!(self.x, Elem::F32 | Elem::Bf16), "`x` is bf16 or f32")
    }
    fn operands(&self) -> StoreIo<Operand, Operand> {
        let (t, width) = (Of(Sym::Tokens), Is(self.cache.width()));
        let domain = Domain::Index { below: self.cache.bound(), distinct: true };
        StoreIo {
            x: Operand::new(Enc::Plain(self.x), &[t, width]),
            at: Operand::new(Enc::I32, &[t]).domain(domain),
            cache: self.cache.operand(),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let t = at.at(Sym::Tokens);
        let row = self.cache.width() * self.x.bits() / 8 + 4;
        let written_bytes = t * self.cache.record.bytes();
        Cost { flops: 0.0, read_bytes: t * row, written_bytes }
    }
}
