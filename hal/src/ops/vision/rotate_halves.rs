//! `vision.rotate_halves`: two-dimensional rotary embedding with split-half pairs, in place.
//!
//! `f_k = base^(-2k / (head_dim/2))`, k below head_dim/4; the angles of a patch at (row, column) are
//! `[row f_0 …, column f_0 …]`, head_dim/2 of them. With a, b the halves of a head:
//! `a <- a cos - b sin`, `b <- b cos + a sin`. (The text model pairs neighbours instead.)
//!
//! Roundings: frequencies to the nearest fp32 (an ulp of one is a visible angle far out), angles one
//! fp32 product, sine and cosine rounded to fp32, the result once to bf16. A row with a negative
//! position, of row or column, is left as it is. Rows see only themselves. Source: vision 5.2.

use crate::ops::prelude::*;

io! {
    /// Operands of [`RotateHalves`].
    pub struct RotateHalvesIo {
        /// `[tokens, heads head_dim]` bf16, in place; may be a column slice.
        x: InOut,
        /// `[tokens]` i32, row of the patch.
        row: In,
        /// `[tokens]` i32, column of the patch.
        column: In,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct RotateHalves {
        /// Heads of a row.
        pub heads: u64,
        /// Dims of a head, a multiple of four.
        pub head_dim: u64,
        /// Base of the frequencies.
        pub base: Real,
    }
}

impl Operator for RotateHalves {
    const ID: &'static str = "vision.rotate_halves";
    type Io<I, O> = RotateHalvesIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.heads > 0, "`heads` must be positive")?;
        let quarters = self.head_dim > 0 && self.head_dim.is_multiple_of(4);
        require(Self::ID, quarters, "`head_dim` is not a multiple of four")?;
        require(Self::ID, self.base.value() > 1.0, "`base` must exceed 1")
    }
    fn operands(&self) -> RotateHalvesIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        let position = Operand::new(Enc::I32, &[t]).domain(Domain::Position);
        RotateHalvesIo {
            x: Operand::new(Enc::BF16, &[t, Is(self.heads * self.head_dim)]),
            row: position.clone(),
            column: position,
        }
    }
}

impl RotateHalves {
    /// `f_k` for every k, by the rule of the [page](self): what backends hand to kernels.
    #[must_use]
    pub fn frequencies(&self) -> Vec<f32> {
        let (base, half) = (f64::from(self.base.value()), self.head_dim as f64 / 2.0);
        (0..self.head_dim / 4).map(|k| libm::pow(base, -2.0 * k as f64 / half) as f32).collect()
    }
}
