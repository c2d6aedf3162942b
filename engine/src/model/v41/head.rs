//! The end of the model: streams collapsed, normed, and scored against the vocabulary in f32.
//!
//! Ranks hold ranges of the vocabulary and gather each other's logits.

use tandem_hal::{
    AllGather, AllGatherIo, Elem, Enc, F32Linear, F32LinearIo, Lane, MhcCollapse, MhcCollapseIo,
    Plan, Real, RmsNorm, RmsNormIo, View,
};

use super::config::Config;
use super::plans::Plans;
use crate::error::Result;
use crate::weights::{Loader, Room, Share};

/// The output matrix, which the draft shares.
#[derive(Clone)]
pub struct HeadWeights {
    head: View,
}

impl HeadWeights {
    /// This rank's rows of `head.weight`.
    pub fn load(loader: &mut Loader<'_>, config: &Config) -> Result<Self> {
        let shape = [config.vocab_size as u64, config.hidden_size as u64];
        let rows = loader.share().of("vocab_size", shape[0])?;
        let head = loader.module("head", |module| {
            module.dense_rows("head.weight", Elem::Bf16, shape, rows.clone())
        })?;
        Ok(Self { head })
    }
}

buffers! {
    /// Scratch of a head.
    pub struct HeadScratch {
        /// `[rows, hidden]` bf16, collapsed and not normed.
        hidden,
        /// `[rows, hidden]` bf16.
        normed,
        /// `[rows, vocab / ranks]` f32; not used by one rank.
        part,
        /// `[rows, vocab]` f32.
        logits,
    }
}

impl HeadScratch {
    /// Buffers for up to `rows` rows.
    pub fn reserve(room: &mut Room<'_>, config: &Config, share: Share, rows: u64) -> Result<Self> {
        let (hidden, vocab) = (config.hidden_size as u64, config.vocab_size as u64);
        let part = if share.ranks() > 1 { vocab / share.ranks() } else { 1 };
        Ok(Self {
            hidden: room.view(Enc::BF16, &[rows, hidden])?,
            normed: room.view(Enc::BF16, &[rows, hidden])?,
            part: room.view(Enc::F32, &[rows, part])?,
            logits: room.view(Enc::F32, &[rows, vocab])?,
        })
    }
}

/// A final norm with the head.
pub struct Head {
    collapse: Plan<MhcCollapse>,
    norm: Plan<RmsNorm>,
    project: Plan<F32Linear>,
    /// More than one rank only.
    gather: Option<Plan<AllGather>>,
    norm_weight: View,
    w: HeadWeights,
}

impl Head {
    /// Plans for a configuration. `norm_weight` is `[hidden]` bf16.
    pub fn plan(
        plans: &mut Plans<'_>,
        config: &Config,
        share: Share,
        norm_weight: View,
        w: HeadWeights,
    ) -> Result<Self> {
        let (streams, width) = (config.hyper.streams as u64, config.hidden_size as u64);
        let (eps, ranks) = (Real::new(config.norm_eps), share.ranks());
        let n = config.vocab_size as u64 / ranks;
        let (x, weight) = (Elem::Bf16, Elem::Bf16);
        let gather = AllGather { width: n, ranks };
        Ok(Self {
            collapse: plans.plan(MhcCollapse { streams, width })?,
            norm: plans.plan(RmsNorm { width, eps })?,
            project: plans.plan(F32Linear { n, k: width, x, weight })?,
            gather: (ranks > 1).then(|| plans.plan(gather)).transpose()?,
            norm_weight,
            w,
        })
    }

    /// Streams `[rows, streams, hidden]` and the mix handed down to `t.hidden` and `t.normed`.
    pub fn norm(&self, on: Lane<'_>, streams: &View, pre: &View, t: &HeadScratch) -> Result<()> {
        on.run(&self.collapse, MhcCollapseIo { streams, pre, y: &t.hidden })?;
        let io = RmsNormIo { x: &t.hidden, weight: &self.norm_weight, y: &t.normed };
        Ok(on.run(&self.norm, io)?)
    }

    /// The same, and on to `t.logits`.
    pub fn forward(&self, on: Lane<'_>, streams: &View, pre: &View, t: &HeadScratch) -> Result<()> {
        self.norm(on, streams, pre, t)?;
        let y = if self.gather.is_some() { &t.part } else { &t.logits };
        on.run(&self.project, F32LinearIo { x: &t.normed, weight: &self.w.head, y })?;
        match &self.gather {
            Some(gather) => Ok(on.run(gather, AllGatherIo { x: &t.part, y: &t.logits })?),
            None => Ok(()),
        }
    }
}
