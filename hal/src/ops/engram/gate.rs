//! `engram.gate`: the looked-up value added to each stream through a gate, in place.
//!
//! `kv[t]` is one key per stream, then one value. Per stream s, with `w = q_weight_s k_weight_s`:
//! `d = (Σ h w key) rstd(h) rstd(key) / sqrt(width)`, `rstd(v) = 1 / sqrt(mean(v²) + eps)`;
//! `g = sigmoid(copysign(sqrt(max(|d|, 1e-6)), d))`; `h_s <- bf(h_s + g value)`.
//!
//! Rows whose mask is set are left untouched (selected, not multiplied by zero).
//! Roundings: sums and gate fp32-class (f64 in the reference, a sum beyond f32 is infinite), the gate
//! rounded to fp32, product and addition in fp32 steps, one to bf16. The sign of zero counts: d = +0
//! gives 0.50025, -0 gives 0.49975. NaN stays in its row and stream; a NaN value reaches every stream of
//! its row. Rows see only themselves. Cost: bytes. Source: Engram 5.4, model report 3.12.

use crate::ops::prelude::*;

io! {
    /// Operands of [`EngramGate`].
    pub struct EngramGateIo {
        /// `[tokens, (streams + 1) width]` bf16.
        kv: In,
        /// `[streams, width]` bf16.
        q_weight: In,
        /// `[streams, width]` bf16.
        k_weight: In,
        /// `[tokens]` i32, 1 for rows that stay as they are.
        masked: In,
        /// `[tokens, streams, width]` bf16, in place.
        streams: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct EngramGate {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy.
        pub width: u64,
        /// Added to the mean squares.
        pub eps: Real,
    }
}

impl Operator for EngramGate {
    const ID: &'static str = "engram.gate";
    type Io<I, O> = EngramGateIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.streams > 0 && self.width > 0, "sizes must be positive")?;
        require(Self::ID, self.eps.value() > 0.0, "`eps` must be positive")
    }
    fn operands(&self) -> EngramGateIo<Operand, Operand> {
        let (t, s, w) = (Of(Sym::Tokens), Is(self.streams), Is(self.width));
        EngramGateIo {
            kv: Operand::new(Enc::BF16, &[t, Is((self.streams + 1) * self.width)]),
            q_weight: Operand::new(Enc::BF16, &[s, w]),
            k_weight: Operand::new(Enc::BF16, &[s, w]),
            masked: Operand::new(Enc::I32, &[t]).domain(Domain::Flag),
            streams: Operand::new(Enc::BF16, &[t, s, w]),
        }
    }
}
