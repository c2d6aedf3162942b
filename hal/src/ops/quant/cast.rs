//! `quant.cast`: bf16 rows to block-scaled codes.
//!
//! Formula, per block of `cols` along a row: `s = scale(max |x|)`, `q = round(clamp(x / s))`. The
//! scale and the limits are those of the encoding's row in [`crate::num::block`]:
//!
//! | encoding | scale | floor of max |
//! |---|---|---|
//! | `Q8` (1x32, UE8M0) | smallest power of two >= max/448 | 1e-4 |
//! | `Q8_FNUZ` | the `Q8` one doubled, codes converted | 1e-4 |
//! | `MXFP4` (1x32, UE8M0) | smallest power of two >= max/6 | 6 x 2^-126 |
//! | `NVFP4` (1x16, E4M3) | E4M3 nearest to max/6, saturating | 6 x 2^-9 |
//! | `FP8_ROW128` (1x128, f32) | max/448 | 1e-4 |
//!
//! Roundings: one, nearest-even, into the code; `x / s` is a true f32 division.
//! NaN: a NaN in a block makes its scale NaN, so every element of the block reads as NaN; other
//! blocks are untouched. Minus zero keeps its sign where the code has one.
//! Rows see only themselves. Used before every FP8 and FP4 linear, and for index queries.
//! Source: model report 3.1, P2 to P5.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Cast`].
    pub struct CastIo {
        /// `[tokens, width]` bf16.
        x: In,
        /// `[tokens, width]` in the encoding.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Cast {
        /// Target encoding, scales of one row each.
        pub to: Enc,
        /// Columns, a multiple of the block.
        pub width: u64,
    }
}

impl Operator for Cast {
    const ID: &'static str = "quant.cast";
    type Io<I, O> = CastIo<I, O>;
    fn check(&self) -> Result<()> {
        let known = [Enc::Q8, Enc::Q8_FNUZ, Enc::MXFP4, Enc::NVFP4, Enc::FP8_ROW128];
        require(Self::ID, known.contains(&self.to), "`to` has no scale rule on the page")?;
        let Enc::Scaled { cols, .. } = self.to else { return Ok(()) };
        let whole = self.width > 0 && self.width.is_multiple_of(u64::from(cols));
        require(Self::ID, whole, "`width` is not a multiple of the block")
    }
    fn operands(&self) -> CastIo<Operand, Operand> {
        let dims = [Of(Sym::Tokens), Is(self.width)];
        CastIo { x: Operand::new(Enc::BF16, &dims), y: Operand::new(self.to, &dims) }
    }
}
