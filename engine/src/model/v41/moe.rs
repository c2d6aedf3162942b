//! Mixture of experts: the router, the routed experts that a token visits, the shared expert.
//!
//! Ranks hold ranges of the routed experts and add up their f32 sums before the shared expert,
//! which every rank holds, joins.

use tandem_hal::{
    AddShared, AddSharedIo, AllReduce, AllReduceIo, Cast, CastIo, Elem, Enc, ExpertDown,
    ExpertDownIo, ExpertUp, ExpertUpIo, Experts, F32Linear, F32LinearIo, Lane, Mxfp8Linear,
    Mxfp8LinearIo, Plan, Real, Route, RouteIo, Swiglu, SwigluIo, View,
};

use super::block::BlockShape;
use super::config::Config;
use super::mhc::Flow;
use super::plans::Plans;
use crate::error::{Error, Result};
use crate::weights::{Module, Room};

/// Weights of a mixture of experts.
pub struct MoeWeights {
    gate: View,
    bias: View,
    bias_picture: View,
    w1: View,
    w3: View,
    w2: View,
    shared_w1: View,
    shared_w3: View,
    shared_w2: View,
}

impl MoeWeights {
    /// Those of the block at `prefix`, which has `experts` in all.
    pub fn load(
        module: &mut Module<'_, '_>,
        config: &Config,
        prefix: &str,
        experts: u64,
    ) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size as u64, config.moe.intermediate_size as u64);
        let held = module.share().of("routed experts", experts)?;
        let name = |what| format!("{prefix}ffn.{what}");
        let expert = |matrix| move |e: u64| format!("{prefix}ffn.experts.{e}.{matrix}");
        Ok(Self {
            gate: module.dense(&name("gate.weight"), Elem::Bf16, [experts, hidden])?,
            bias: module.plain(&name("gate.bias"), Elem::F32, &[experts])?,
            bias_picture: module.plain(&name("gate.bias_vl"), Elem::F32, &[experts])?,
            w1: module.experts(expert("w1"), held.clone(), inner, hidden)?,
            w3: module.experts(expert("w3"), held.clone(), inner, hidden)?,
            w2: module.experts(expert("w2"), held, hidden, inner)?,
            shared_w1: module.mxfp8(&name("shared_experts.w1"), inner, hidden)?,
            shared_w3: module.mxfp8(&name("shared_experts.w3"), inner, hidden)?,
            shared_w2: module.mxfp8(&name("shared_experts.w2"), hidden, inner)?,
        })
    }
}

buffers! {
    /// Scratch of a mixture of experts.
    pub struct MoeScratch {
        /// `[tokens, experts]` f32 router logits.
        logits,
        /// `[tokens, top k]` i32 experts, best first.
        expert,
        /// `[tokens, top k]` f32.
        weight,
        /// `[tokens, top k * inner]` FP8.
        up8,
        /// `[tokens, hidden]` f32, the sum over this rank's experts.
        routed,
        /// `[tokens, hidden]` f32, the sum over all ranks.
        summed,
        /// `[tokens, 2 inner]` bf16, gate then up of the shared expert.
        shared_up,
        /// `[tokens, inner]` bf16.
        shared_unit,
        /// `[tokens, inner]` FP8.
        shared_unit8,
        /// `[tokens, hidden]` bf16.
        shared,
    }
}

impl MoeScratch {
    /// Buffers for up to `tokens` rows that each visit `top_k` of `experts`.
    pub fn reserve(
        room: &mut Room<'_>,
        config: &Config,
        (experts, top_k): (u64, u64),
        tokens: u64,
    ) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size as u64, config.moe.intermediate_size as u64);
        Ok(Self {
            logits: room.view(Enc::F32, &[tokens, experts])?,
            expert: room.view(Enc::I32, &[tokens, top_k])?,
            weight: room.view(Enc::F32, &[tokens, top_k])?,
            up8: room.view(Enc::Q8, &[tokens, top_k * inner])?,
            routed: room.view(Enc::F32, &[tokens, hidden])?,
            summed: room.view(Enc::F32, &[tokens, hidden])?,
            shared_up: room.view(Enc::BF16, &[tokens, 2 * inner])?,
            shared_unit: room.view(Enc::BF16, &[tokens, inner])?,
            shared_unit8: room.view(Enc::Q8, &[tokens, inner])?,
            shared: room.view(Enc::BF16, &[tokens, hidden])?,
        })
    }
}

/// The mixture of experts of one block.
pub struct Moe {
    gate: Plan<F32Linear>,
    route: Plan<Route>,
    up: Plan<ExpertUp>,
    down: Plan<ExpertDown>,
    /// More than one rank only.
    reduce: Option<Plan<AllReduce>>,
    shared: SharedExpert,
    add: Plan<AddShared>,
    w: MoeWeights,
}

/// The expert that every row visits.
struct SharedExpert {
    up: Plan<Mxfp8Linear>,
    unit: Plan<Swiglu>,
    cast: Plan<Cast>,
    down: Plan<Mxfp8Linear>,
}

impl SharedExpert {
    fn plan(plans: &mut Plans<'_>, (hidden, inner): (u64, u64), limit: Real) -> Result<Self> {
        Ok(Self {
            up: plans.plan(Mxfp8Linear { n: inner, k: hidden })?,
            unit: plans.plan(Swiglu { slots: 1, inter: inner, limit, weighted: false })?,
            cast: plans.plan(Cast { to: Enc::Q8, width: inner })?,
            down: plans.plan(Mxfp8Linear { n: hidden, k: inner })?,
        })
    }

    fn forward(&self, on: Lane<'_>, x8: &View, w: &MoeWeights, t: &MoeScratch) -> Result<()> {
        let inner = self.up.descriptor().n;
        let (gate, up) = (t.shared_up.cols(0..inner)?, t.shared_up.cols(inner..2 * inner)?);
        on.run(&self.up, Mxfp8LinearIo { x: x8, weight: &w.shared_w1, y: &gate })?;
        on.run(&self.up, Mxfp8LinearIo { x: x8, weight: &w.shared_w3, y: &up })?;
        let none = View::absent(Enc::F32);
        on.run(&self.unit, SwigluIo { x: &t.shared_up, weight: &none, y: &t.shared_unit })?;
        on.run(&self.cast, CastIo { x: &t.shared_unit, y: &t.shared_unit8 })?;
        let io = Mxfp8LinearIo { x: &t.shared_unit8, weight: &w.shared_w2, y: &t.shared };
        Ok(on.run(&self.down, io)?)
    }
}

impl Moe {
    /// Plans for a block.
    ///
    /// # Errors
    /// A router temperature, which no operator applies, or what planning answers.
    pub fn plan(plans: &mut Plans<'_>, shape: &BlockShape<'_>, w: MoeWeights) -> Result<Self> {
        let moe = &shape.config.moe;
        if moe.gate_temperature != 1.0 {
            let problem = format!("{} is not supported; only 1 is", moe.gate_temperature);
            return Err(Error::config("gate_temp", problem));
        }
        let (hidden, inner) = (shape.config.hidden_size as u64, moe.intermediate_size as u64);
        let held = shape.share.of("routed experts", shape.experts)?;
        let (total, top_k, ranks) = (shape.experts, shape.experts_per_token, shape.share.ranks());
        let (first, local) = (held.start, held.end - held.start);
        let experts = Experts { total, first, local, top_k, hidden, inter: inner };
        let limit = Real::new(moe.swiglu_limit.unwrap_or(0.0));
        let (x, weight) = (Elem::Bf16, Elem::Bf16);
        let reduce = AllReduce { width: hidden, ranks };
        Ok(Self {
            gate: plans.plan(F32Linear { n: total, k: hidden, x, weight })?,
            route: plans.plan(Route {
                experts: total,
                top_k,
                scale: Real::new(moe.route_scale),
                pictures: shape.pictures,
            })?,
            up: plans.plan(ExpertUp { experts: experts.clone(), limit })?,
            down: plans.plan(ExpertDown { experts })?,
            reduce: (ranks > 1).then(|| plans.plan(reduce)).transpose()?,
            shared: plans.beside(|plans| SharedExpert::plan(plans, (hidden, inner), limit))?,
            add: plans.plan(AddShared { hidden })?,
            w,
        })
    }

    /// `flow.x` and `flow.x8` to `flow.y`; `picture` marks rows of pictures, where they matter.
    pub fn forward(
        &self,
        on: Lane<'_>,
        flow: &Flow,
        picture: Option<&View>,
        t: &MoeScratch,
    ) -> Result<()> {
        let (w, x8) = (&self.w, &flow.x8);
        self.shared.forward(on.fork()?, x8, w, t)?;
        on.run(&self.gate, F32LinearIo { x: &flow.x, weight: &w.gate, y: &t.logits })?;
        let (no_bias, no_picture) = (View::absent(Enc::F32), View::absent(Enc::I32));
        on.run(
            &self.route,
            RouteIo {
                logits: &t.logits,
                bias: &w.bias,
                bias_picture: if picture.is_some() { &w.bias_picture } else { &no_bias },
                picture: picture.unwrap_or(&no_picture),
                expert: &t.expert,
                weight: &t.weight,
            },
        )?;
        let (expert, weight, w1, w3) = (&t.expert, &t.weight, &w.w1, &w.w3);
        on.run(&self.up, ExpertUpIo { x: x8, expert, weight, w1, w3, y: &t.up8 })?;
        on.run(&self.down, ExpertDownIo { x: &t.up8, expert, w2: &w.w2, y: &t.routed })?;
        let routed = match &self.reduce {
            Some(reduce) => {
                on.run(reduce, AllReduceIo { x: &t.routed, y: &t.summed })?;
                &t.summed
            }
            None => &t.routed,
        };
        on.join()?;
        Ok(on.run(&self.add, AddSharedIo { routed, shared: &t.shared, y: &flow.y })?)
    }
}
