//! `quant.decode`: block-scaled codes to bf16, `y = code x scale`.
//!
//! Roundings: one, to bf16; exact for every encoding with power-of-two scales and for NVFP4, except
//! below bf16's normal range. A NaN code or scale gives NaN.
//! Rows see only themselves. Used to read caches back and by tests; the inverse of
//! [`crate::Cast`] on values it made. Source: model report 2.4 and 3.1, P3.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Decode`].
    pub struct DecodeIo {
        /// `[tokens, width]` codes and scales.
        x: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Decode {
        /// Encoding of the input, scales of one row each.
        pub from: Enc,
        /// Columns, a multiple of the block.
        pub width: u64,
    }
}

impl Operator for Decode {
    const ID: &'static str = "quant.decode";
    type Io<I, O> = DecodeIo<I, O>;
    fn check(&self) -> Result<()> {
        let Enc::Scaled { rows, cols, .. } = self.from else {
            return require(Self::ID, false, "`from` has no scales");
        };
        require(Self::ID, rows == 1, "`from` shares scales between rows")?;
        let whole = self.width > 0 && self.width.is_multiple_of(u64::from(cols));
        require(Self::ID, whole, "`width` is not a multiple of the block")
    }
    fn operands(&self) -> DecodeIo<Operand, Operand> {
        let dims = [Of(Sym::Tokens), Is(self.width)];
        DecodeIo { x: Operand::new(self.from, &dims), y: Operand::new(Enc::BF16, &dims) }
    }
}
