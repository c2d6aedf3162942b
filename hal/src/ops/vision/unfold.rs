//! `vision.unfold`: a cell's patches in one row, channel-major, `y[c, d s² + i] = x[at[c,i], d]`.
//!
//! `at` lists the patches of a cell in reading order (`s²` of them for a merge of s by s); -1 or
//! outside is the zero padding at the right and bottom edge. Position-major order would be wrong.
//! Exact. The independent rows are the cells. Source: vision 6.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Unfold`].
    pub struct UnfoldIo {
        /// `[tokens, width]` bf16, one row a patch.
        x: In,
        /// `[cells, side²]` i32.
        at: In,
        /// `[cells, width side²]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Unfold {
        /// Columns of a patch.
        pub width: u64,
        /// Patches along a side of a cell.
        pub side: u64,
    }
}

impl Operator for Unfold {
    const ID: &'static str = "vision.unfold";
    const ROWS: Sym = Sym::Cells;
    type Io<I, O> = UnfoldIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.width > 0 && self.side > 0, "sizes must be positive")
    }
    fn operands(&self) -> UnfoldIo<Operand, Operand> {
        let (cells, patches) = (Of(Sym::Cells), self.side * self.side);
        UnfoldIo {
            x: Operand::new(Enc::BF16, &[Of(Sym::Tokens), Is(self.width)]),
            at: Operand::index(&[cells, Is(patches)], IndexBound::Rows(Sym::Tokens, 1)),
            y: Operand::new(Enc::BF16, &[cells, Is(self.width * patches)]),
        }
    }
}
