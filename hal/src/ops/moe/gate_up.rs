//! `moe.gate_up`: each taken expert's gate and up projections,
//! `y[t,i] = [bf(w1_e x[t]) | bf(w3_e x[t])]`, `e = expert[t,i]`.
//!
//! A rank may hold the experts `first .. first + local` only. A slot whose expert is -1, outside, or
//! elsewhere gives zeros and reads no weight.
//! Roundings: products are exact; fp32-class sum (f64 in the reference), one to bf16. NaN stays in
//! its row. Rows see only themselves; an expert taken by many rows is the same for each.
//! Cost: `4 t top_k inter hidden` FLOPs, less the share of experts elsewhere; every expert that
//! occurs is read once, as many as uniform routing reaches.
//! Source: model report 3.11, P7.

use crate::ops::prelude::*;

io! {
    /// Operands of [`GateUp`].
    pub struct GateUpIo {
        /// `[tokens, hidden]` codes and scales.
        x: In,
        /// `[tokens, top_k]` i32.
        expert: In,
        /// `[local, inter, hidden]` MXFP4, gate; may be in a private layout.
        w1: In,
        /// `[local, inter, hidden]` MXFP4, up; may be in a private layout.
        w3: In,
        /// `[tokens, top_k 2 inter]` bf16.
        y: Out,
    }
}

descriptor! {
    /// Routed experts as a device holds them.
    pub struct Experts {
        /// Experts there are.
        pub total: u64,
        /// First one held here.
        pub first: u64,
        /// How many are held here.
        pub local: u64,
        /// Experts taken a row.
        pub top_k: u64,
        /// Width of the model.
        pub hidden: u64,
        /// Width inside an expert.
        pub inter: u64,
    }
}

impl Experts {
    /// Chosen experts, `[tokens, top_k]` i32.
    pub fn index(&self) -> Operand {
        let dims = [Of(Sym::Tokens), Is(self.top_k)];
        Operand::index(&dims, IndexBound::Fixed(self.total))
    }
    /// Stacked weights, `[local, n, k]`.
    pub fn weight(&self, n: u64, k: u64) -> Operand {
        Operand::new(Enc::MXFP4, &[Is(self.local), Is(n), Is(k)])
            .domain(Domain::Weight(Class::Experts))
    }
    /// Bytes of the experts here that `rows` rows reach when every expert is as likely as another,
    /// on average, for `n x k` weights.
    pub(crate) fn weight_bytes(&self, rows: u64, n: u64, k: u64) -> u64 {
        let missed = 1.0 - self.top_k as f64 / self.total as f64;
        let reached = self.local as f64 * (1.0 - missed.powf(rows as f64));
        (reached * (n * k * 17 / 32) as f64) as u64
    }
    /// Operations of `rows` rows on the experts here, likewise, for `n x k` weights.
    pub(crate) fn flops(&self, rows: u64, n: u64, k: u64) -> f64 {
        matmul_flops(rows * self.top_k, n, k) * self.local as f64 / self.total as f64
    }
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        let held = self.local > 0 && self.first.saturating_add(self.local) <= self.total;
        require(op, held, "`first` and `local` are not within `total`")?;
        let fits = self.top_k > 0 && self.top_k <= self.total;
        require(op, fits, "`top_k` is not within 1 and `total`")?;
        let blocks = |n: u64| n > 0 && n.is_multiple_of(32);
        require(op, blocks(self.hidden), "`hidden` is not a multiple of 32")?;
        require(op, blocks(self.inter), "`inter` is not a multiple of 32")
    }
}

descriptor! {
    /// See the [page](self).
    pub struct GateUp {
        /// The experts.
        pub experts: Experts,
    }
}

impl Operator for GateUp {
    const ID: &'static str = "moe.gate_up";
    type Io<I, O> = GateUpIo<I, O>;
    fn check(&self) -> Result<()> {
        self.experts.check(Self::ID)
    }
    fn operands(&self) -> GateUpIo<Operand, Operand> {
        let (t, e) = (Of(Sym::Tokens), &self.experts);
        GateUpIo {
            x: Operand::new(Enc::Q8, &[t, Is(e.hidden)]),
            expert: e.index(),
            w1: e.weight(e.inter, e.hidden),
            w3: e.weight(e.inter, e.hidden),
            y: Operand::new(Enc::BF16, &[t, Is(e.top_k * 2 * e.inter)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let (t, e) = (at.at(Sym::Tokens), &self.experts);
        Cost {
            flops: 2.0 * e.flops(t, e.inter, e.hidden),
            read_bytes: t * (e.hidden * 33 / 32 + e.top_k * 4)
                + 2 * e.weight_bytes(t, e.inter, e.hidden),
            written_bytes: t * e.top_k * 4 * e.inter,
        }
    }
}
