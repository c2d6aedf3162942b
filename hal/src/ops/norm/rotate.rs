//! `norm.rotate`: rotary embedding of the last `rotary` dims, in place, in adjacent pairs.
//!
//! For pair i of a head: `a = fl32(t f_i)`, then
//! `(x[2i], x[2i+1]) <- (x[2i] cos a - x[2i+1] sin a, x[2i] sin a + x[2i+1] cos a)`; `inverse`
//! negates the sine. `t` is the row's position, lowered to a multiple of `group` (the position of a
//! compressed entry is that of its group's first token).
//!
//! Frequencies: `f_i = 1 / base^(2i / rotary)`, the power rounded to f32 and the quotient again;
//! with `yarn`, ramped between `f_i` and `f_i / factor` over the pairs from `low` to `high`, each
//! step in f32:
//! `corr(b) = rotary ln(original / (2π b)) / (2 ln base)`, `low = max(floor(corr(beta_fast)), 0)`,
//! `high = min(ceil(corr(beta_slow)), rotary - 1)`,
//! `r_i = clamp((i - low) / max(high - low, 1e-3), 0, 1)`, `f_i <- (f_i / factor) r_i + f_i (1 - r_i)`.
//! There is no attention factor. Every backend makes the table on the host by this rule, from a
//! power that is right when rounded; published tables differ where their library's was an ulp off.
//!
//! Roundings: the angle is one fp32 product (at a million tokens a more exact angle is a different
//! rotation); sine and cosine of that angle with full argument reduction, rounded to fp32; the
//! products and their sum in fp32 steps, the result once to bf16. Rows with a negative position are
//! left as they are. Rows see only themselves. Dims before the last `rotary` are untouched.
//! Used on queries, window and compressed keys, index queries and keys, and (inverse) on the
//! attention output. Source: model report 3.1, P10.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Rotate`].
    pub struct RotateIo {
        /// `[tokens, heads, head_dim]` bf16, or `[tokens, head_dim]` for one head, in place.
        x: InOut,
        /// `[tokens]` i32.
        position: In,
    }
}

descriptor! {
    /// Frequency interpolation for long contexts.
    pub struct Yarn {
        /// Division of the slow frequencies.
        pub factor: Real,
        /// Rotations over the original length above which a pair keeps its frequency.
        pub beta_fast: Real,
        /// Rotations below which it is divided whole.
        pub beta_slow: Real,
        /// Length the model was first trained for.
        pub original: u64,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Rotate {
        /// Heads of a row.
        pub heads: u64,
        /// Dims of a head.
        pub head_dim: u64,
        /// How many of the last dims rotate.
        pub rotary: u64,
        /// Base of the frequencies.
        pub base: Real,
        /// Interpolation, if any.
        pub yarn: Option<Yarn>,
        /// Whether to rotate back.
        pub inverse: bool,
        /// Tokens that share a position.
        pub group: u64,
    }
}

impl Operator for Rotate {
    const ID: &'static str = "norm.rotate";
    type Io<I, O> = RotateIo<I, O>;
    fn check(&self) -> Result<()> {
        require(
            Self::ID,
            self.heads > 0 && self.group > 0,
            "`heads` and `group` must be positive",
        )?;
        let fits = self.rotary > 0 && self.rotary <= self.head_dim;
        require(Self::ID, fits, "`rotary` is not within `head_dim`")?;
        require(Self::ID, self.rotary.is_multiple_of(2), "`rotary` is odd")?;
        require(Self::ID, self.base.value() > 1.0, "`base` must exceed 1")
    }
    fn operands(&self) -> RotateIo<Operand, Operand> {
        let (t, heads, dim) = (Of(Sym::Tokens), Is(self.heads), Is(self.head_dim));
        let rows = if self.heads == 1 { vec![t, dim] } else { vec![t, heads, dim] };
        RotateIo {
            x: Operand::new(Enc::BF16, &rows),
            position: Operand::new(Enc::I32, &[Of(Sym::Tokens)]).domain(Domain::Position),
        }
    }
}

impl Rotate {
    /// The frequency of every pair, by the rule of the [page](self): what backends hand to kernels.
    #[must_use]
    pub fn frequencies(&self) -> Vec<f32> {
        let (pairs, base) = (self.rotary / 2, f64::from(self.base.value()));
        let plain = |i: u64| 1.0 / libm::pow(base, (2 * i) as f64 / self.rotary as f64) as f32;
        let Some(yarn) = &self.yarn else { return (0..pairs).map(plain).collect() };
        let (low, high) = yarn.ramp_ends(self.rotary, base);
        let interpolated = |i: u64| {
            let ramp = ((i as f32 - low) / (high - low).max(1e-3)).clamp(0.0, 1.0);
            let f = plain(i);
            f / yarn.factor.value() * ramp + f * (1.0 - ramp)
        };
        (0..pairs).map(interpolated).collect()
    }
}

impl Yarn {
    /// Pairs between which the interpolation sets in.
    fn ramp_ends(&self, rotary: u64, base: f64) -> (f32, f32) {
        let rotary = rotary as f64;
        let corr = |beta: Real| {
            let turns =
                self.original as f64 / (2.0 * std::f64::consts::PI * f64::from(beta.value()));
            rotary * libm::log(turns) / (2.0 * libm::log(base))
        };
        let (low, high) = (corr(self.beta_fast).floor(), corr(self.beta_slow).ceil());
        (low.max(0.0) as f32, high.min(rotary - 1.0) as f32)
    }
}

/// The softmax factor that earlier models of the family multiply in twice when YaRN stretches
/// their context by `factor`: `0.1 scale ln(factor) + 1`, and 1 for factors up to 1. V4.1 has none.
pub fn mscale(factor: f64, scale: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 }
}
