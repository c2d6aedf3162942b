//! What surrounds a sub-layer: the streams collapsed to its input, its output spread over them.
//!
//! `mixes` come from the streams before the sub-layer. Their `post` and `comb` serve this
//! sub-layer's output; their `pre` is handed down and collapses the **next** sub-layer's input.

use tandem_hal::{
    Elem, Enc, Lane, MhcCollapseNorm, MhcCollapseNormIo, MhcExpand, MhcExpandIo, MhcMixes,
    MhcMixesIo, Plan, Real, View,
};

use super::config::Config;
use super::plans::Plans;
use super::recipe::Recipe;
use crate::error::Result;
use crate::weights::{Module, Room};

/// Weights around one sub-layer.
pub struct SubLayerWeights {
    norm: View,
    projection: View,
    base: View,
    scale: View,
}

impl SubLayerWeights {
    /// Those of `sublayer`, `attn` or `ffn`, of the block at `prefix`.
    pub fn load(
        module: &mut Module<'_, '_>,
        config: &Config,
        prefix: &str,
        sublayer: &str,
    ) -> Result<Self> {
        let (hidden, hyper) = (config.hidden_size as u64, &config.hyper);
        let (mixes, width) = (hyper.mix_size() as u64, hyper.streams as u64 * hidden);
        let name = |what| format!("{prefix}hc_{sublayer}_{what}");
        Ok(Self {
            norm: module.plain(
                &format!("{prefix}{sublayer}_norm.weight"),
                Elem::Bf16,
                &[hidden],
            )?,
            projection: module.dense(&name("fn"), Elem::F32, [mixes, width])?,
            base: module.plain(&name("base"), Elem::F32, &[mixes])?,
            scale: module.plain(&name("scale"), Elem::F32, &[3])?,
        })
    }
}

buffers! {
    /// The residual of a step and what a sub-layer makes of it. A block leaves `streams` and `pre`
    /// where it found them.
    pub struct Flow {
        /// `[tokens, streams, hidden]` bf16.
        streams,
        /// The same between the two sub-layers of a block.
        spare_streams,
        /// `[tokens, streams]` f32, the mix handed down.
        pre,
        /// The same between the two sub-layers of a block.
        spare_pre,
        /// `[tokens, streams]` f32.
        post,
        /// `[tokens, streams, streams]` f32.
        comb,
        /// `[tokens, hidden]` bf16, a sub-layer's normed input.
        x,
        /// The same in FP8.
        x8,
        /// `[tokens, hidden]` bf16, a sub-layer's output.
        y,
    }
}

impl Flow {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(room: &mut Room<'_>, config: &Config, tokens: u64) -> Result<Self> {
        let (hidden, streams) = (config.hidden_size as u64, config.hyper.streams as u64);
        Ok(Self {
            streams: room.view(Enc::BF16, &[tokens, streams, hidden])?,
            spare_streams: room.view(Enc::BF16, &[tokens, streams, hidden])?,
            pre: room.view(Enc::F32, &[tokens, streams])?,
            spare_pre: room.view(Enc::F32, &[tokens, streams])?,
            post: room.view(Enc::F32, &[tokens, streams])?,
            comb: room.view(Enc::F32, &[tokens, streams, streams])?,
            x: room.view(Enc::BF16, &[tokens, hidden])?,
            x8: room.view(Enc::Q8, &[tokens, hidden])?,
            y: room.view(Enc::BF16, &[tokens, hidden])?,
        })
    }

    /// The same buffers as the second sub-layer of a block sees them, and as it leaves them.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let mut flow = self.clone();
        std::mem::swap(&mut flow.streams, &mut flow.spare_streams);
        std::mem::swap(&mut flow.pre, &mut flow.spare_pre);
        flow
    }
}

/// One side of a block without its sub-layer.
pub struct SubLayer {
    mixes: Plan<MhcMixes>,
    collapse: Plan<MhcCollapseNorm>,
    expand: Plan<MhcExpand>,
    delayed: bool,
    w: SubLayerWeights,
}

impl SubLayer {
    /// Plans for a configuration.
    pub fn plan(
        plans: &mut Plans<'_>,
        config: &Config,
        recipe: &Recipe,
        w: SubLayerWeights,
    ) -> Result<Self> {
        let (streams, width) = (config.hyper.streams as u64, config.hidden_size as u64);
        let norm_eps = Real::new(config.norm_eps);
        let mixes = MhcMixes {
            streams,
            width,
            iterations: config.hyper.sinkhorn_iterations as u64,
            eps: Real::new(config.hyper.eps),
            norm_eps,
        };
        Ok(Self {
            mixes: plans.beside(|plans| plans.plan(mixes))?,
            collapse: plans.plan(MhcCollapseNorm { streams, width, eps: norm_eps })?,
            expand: plans.plan(MhcExpand { streams, width })?,
            delayed: recipe.delayed_mix,
            w,
        })
    }

    /// Before the sub-layer: its input, `x` and `x8`.
    pub fn open(&self, on: Lane<'_>, flow: &Flow) -> Result<()> {
        if !self.delayed {
            self.mix(on, flow)?;
        }
        let pre = if self.delayed { &flow.pre } else { &flow.spare_pre };
        let (streams, weight, y, y8) = (&flow.streams, &self.w.norm, &flow.x, &flow.x8);
        Ok(on.run(&self.collapse, MhcCollapseNormIo { streams, pre, weight, y, y8 })?)
    }

    /// `spare_pre`, `post` and `comb` on the side, where the input did not need them: some time between
    /// [`SubLayer::open`] and [`SubLayer::close`].
    pub fn mix_beside(&self, on: Lane<'_>, flow: &Flow) -> Result<()> {
        if self.delayed { self.mix(on.fork()?, flow) } else { Ok(()) }
    }

    fn mix(&self, on: Lane<'_>, flow: &Flow) -> Result<()> {
        let w = &self.w;
        let io = MhcMixesIo {
            streams: &flow.streams,
            projection: &w.projection,
            base: &w.base,
            scale: &w.scale,
            pre: &flow.spare_pre,
            post: &flow.post,
            comb: &flow.comb,
        };
        Ok(on.run(&self.mixes, io)?)
    }

    /// After the sub-layer and its mixes: `y` spread over the streams into `spare_streams`.
    pub fn close(&self, on: Lane<'_>, flow: &Flow) -> Result<()> {
        if self.delayed {
            on.join()?;
        }
        Ok(on.run(
            &self.expand,
            MhcExpandIo {
                x: &flow.y,
                residual: &flow.streams,
                post: &flow.post,
                comb: &flow.comb,
                y: &flow.spare_streams,
            },
        )?)
    }
}
