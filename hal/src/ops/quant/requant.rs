//! `quant.requant`: a weight from the checkpoint's FP8 dialect to that of gfx942, without loss.
//!
//! Every finite E4M3FN code is exactly twice the same E4M3FNUZ code, so codes keep their bits and
//! the scale doubles (its byte grows by one). Code 0x80 (minus zero, NaN in the other dialect)
//! becomes 0x00, the NaN codes 0x7F and 0xFF become 0x80.
//!
//! Out of range: a scale byte of 254 cannot double; it becomes the NaN byte 255, never a wrapped
//! value, and 255 stays 255. Loaders refuse such a weight before they launch this.
//! Roundings: none. Runs at load on gfx942 only. Source: architecture 10.6.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Requant`].
    pub struct RequantIo {
        /// `[n, k]` E4M3FN codes, one UE8M0 scale per tile.
        x: In,
        /// `[n, k]` E4M3FNUZ codes, one UE8M0 scale per tile.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Requant {
        /// Rows of the weight.
        pub n: u64,
        /// Columns of the weight.
        pub k: u64,
        /// Rows and columns of a scale tile.
        pub tile: u64,
    }
}

impl Requant {
    fn enc(&self, code: Elem) -> Enc {
        Enc::scaled(code, Elem::Ue8m0, self.tile as u16, self.tile as u16)
    }
}

impl Operator for Requant {
    const ID: &'static str = "quant.requant";
    type Io<I, O> = RequantIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.n > 0 && self.k > 0, "`n` and `k` must be positive")?;
        require(Self::ID, matches!(self.tile, 32 | 128), "`tile` is 32 or 128")
    }
    fn operands(&self) -> RequantIo<Operand, Operand> {
        let dims = [Is(self.n), Is(self.k)];
        RequantIo {
            x: Operand::new(self.enc(Elem::E4m3Fn), &dims),
            y: Operand::new(self.enc(Elem::E4m3Fnuz), &dims),
        }
    }
}
