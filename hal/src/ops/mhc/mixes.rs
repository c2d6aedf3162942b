//! `mhc.mixes`: the coefficients that a sub-layer's input, output and residual mix with.
//!
//! With `S` streams and `v` the row's streams side by side (stream 0 first):
//! `m = (fn v) / sqrt(mean(v²) + norm_eps)`, scaled after the product;
//! `pre_k = sigmoid(m_k scale_0 + base_k) + eps`;
//! `post_k = 2 sigmoid(m_{S+k} scale_1 + base_{S+k})`, no eps;
//! `C_jk = m_{2S+Sj+k} scale_2 + base_{2S+Sj+k}`, j the source stream, k the destination;
//! C becomes softmax over k of each row (the maximum subtracted) plus eps, then is divided by
//! (column sums over j + eps); then `iterations - 1` times by (row sums + eps) and by (column sums
//! + eps). The softmax counts as the first row step; the last step is over columns.
//!
//! Roundings: everything fp32 (f64 in the reference but for the reciprocal root, rounded to f32;
//! the coefficients once to f32 at the end). The product
//! is a true fp32 one: TF32 is another operator. NaN stays in its row. Rows see only themselves.
//! Cost: `2 t (2S + S²) S w` FLOPs. Runs twice a block. Source: model report 3.4.

use crate::ops::prelude::*;

io! {
    /// Operands of [`MhcMixes`].
    pub struct MhcMixesIo {
        /// `[tokens, streams, width]` bf16.
        streams: In,
        /// `[2 S + S², S width]` f32; may be in a private layout.
        projection: In,
        /// `[2 S + S²]` f32.
        base: In,
        /// `[3]` f32.
        scale: In,
        /// `[tokens, streams]` f32.
        pre: Out,
        /// `[tokens, streams]` f32.
        post: Out,
        /// `[tokens, streams, streams]` f32, source stream first.
        comb: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct MhcMixes {
        /// Copies of the residual.
        pub streams: u64,
        /// Width of one copy.
        pub width: u64,
        /// Row steps of the Sinkhorn normalisation, the softmax included.
        pub iterations: u64,
        /// Added in the sigmoid and in every denominator.
        pub eps: Real,
        /// Added to the mean square.
        pub norm_eps: Real,
    }
}

impl MhcMixes {
    /// Rows of the projection.
    pub fn coefficients(&self) -> u64 {
        (2 + self.streams) * self.streams
    }
}

impl Operator for MhcMixes {
    const ID: &'static str = "mhc.mixes";
    type Io<I, O> = MhcMixesIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.streams > 0 && self.width > 0, "sizes must be positive")?;
        require(Self::ID, self.iterations > 0, "`iterations` must be positive")
    }
    fn operands(&self) -> MhcMixesIo<Operand, Operand> {
        let (t, s, w) = (Of(Sym::Tokens), Is(self.streams), Is(self.width));
        let n = Is(self.coefficients());
        let row = Operand::new(Enc::F32, &[t, s]);
        MhcMixesIo {
            streams: Operand::new(Enc::BF16, &[t, s, w]),
            projection: Operand::new(Enc::F32, &[n, Is(self.streams * self.width)])
                .domain(Domain::Weight(Class::Dense)),
            base: Operand::new(Enc::F32, &[n]),
            scale: Operand::new(Enc::F32, &[Is(3)]),
            pre: row.clone(),
            post: row,
            comb: Operand::new(Enc::F32, &[t, s, s]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let k = self.streams * self.width;
        Cost::of(self, at, matmul_flops(at.at(Sym::Tokens), self.coefficients(), k))
    }
}
