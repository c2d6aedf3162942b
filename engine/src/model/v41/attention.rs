//! Attention of a block: queries over the window and, in layers that compress, over the selected
//! entries, in one softmax; then the grouped output projection.
//!
//! Keys are values, one shared latent a token. Ranks hold attention whole.

use tandem_hal::{
    Cast, CastIo, Elem, Enc, GroupedLinear, GroupedLinearIo, Lane, Mxfp8Linear, Mxfp8LinearIo,
    NormRotateStore, NormRotateStoreIo, Plan, Real, RmsNormCast, RmsNormCastIo, Rotate, RotateIo,
    SparseAttention, SparseAttentionIo, View,
};

use super::block::{BlockShape, Rows};
use super::config::Config;
use super::plans::Plans;
use crate::error::Result;
use crate::weights::{Module, Room};

/// Weights of attention.
pub struct AttentionWeights {
    wq_a: View,
    q_norm: View,
    wq_b: View,
    wkv: View,
    kv_norm: View,
    sink: View,
    wo_a: View,
    wo_b: View,
}

impl AttentionWeights {
    /// Those of the block at `prefix`.
    pub fn load(module: &mut Module<'_, '_>, config: &Config, prefix: &str) -> Result<Self> {
        let d = Dims::of(config);
        let name = |what| format!("{prefix}attn.{what}");
        Ok(Self {
            wq_a: module.mxfp8(&name("wq_a"), d.rank, d.hidden)?,
            q_norm: module.plain(&name("q_norm.weight"), Elem::Bf16, &[d.rank])?,
            wq_b: module.mxfp8(&name("wq_b"), d.heads * d.head_dim, d.rank)?,
            wkv: module.mxfp8(&name("wkv"), d.head_dim, d.hidden)?,
            kv_norm: module.plain(&name("kv_norm.weight"), Elem::Bf16, &[d.head_dim])?,
            sink: module.plain(&name("attn_sink"), Elem::F32, &[d.heads])?,
            wo_a: module.mxfp8(&name("wo_a"), d.groups * d.group_rank, d.group_width())?,
            wo_b: module.mxfp8(&name("wo_b"), d.hidden, d.groups * d.group_rank)?,
        })
    }
}

struct Dims {
    hidden: u64,
    rank: u64,
    heads: u64,
    head_dim: u64,
    groups: u64,
    group_rank: u64,
}

impl Dims {
    fn of(config: &Config) -> Self {
        let a = &config.attention;
        Self {
            hidden: config.hidden_size as u64,
            rank: a.q_lora_rank as u64,
            heads: a.heads as u64,
            head_dim: a.head_dim as u64,
            groups: a.o_groups as u64,
            group_rank: a.o_lora_rank as u64,
        }
    }

    /// Output channels of a group's heads.
    fn group_width(&self) -> u64 {
        self.heads / self.groups * self.head_dim
    }
}

buffers! {
    /// Scratch of attention.
    pub struct AttentionScratch {
        /// `[tokens, q rank]` bf16, before its norm.
        qr,
        /// The same normed, in FP8; the indexer's query reads it too.
        qr8,
        /// `[tokens, heads, head_dim]` bf16.
        q,
        /// `[tokens, head_dim]` bf16, the window latent before its norm.
        kv,
        /// `[tokens, heads, head_dim]` bf16.
        o,
        /// `[tokens, groups, group rank]` bf16.
        z,
        /// `[tokens, groups * group rank]` FP8.
        z8,
    }
}

impl AttentionScratch {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(room: &mut Room<'_>, config: &Config, tokens: u64) -> Result<Self> {
        let d = Dims::of(config);
        Ok(Self {
            qr: room.view(Enc::BF16, &[tokens, d.rank])?,
            qr8: room.view(Enc::Q8, &[tokens, d.rank])?,
            q: room.view(Enc::BF16, &[tokens, d.heads * d.head_dim])?,
            kv: room.view(Enc::BF16, &[tokens, d.head_dim])?,
            o: room.view(Enc::BF16, &[tokens, d.heads * d.head_dim])?,
            z: room.view(Enc::BF16, &[tokens, d.groups * d.group_rank])?,
            z8: room.view(Enc::Q8, &[tokens, d.groups * d.group_rank])?,
        })
    }
}

/// Attention of one block.
pub struct Attention {
    wq_a: Plan<Mxfp8Linear>,
    q_norm: Plan<RmsNormCast>,
    wq_b: Plan<Mxfp8Linear>,
    rotate: Plan<Rotate>,
    wkv: Plan<Mxfp8Linear>,
    store: Plan<NormRotateStore>,
    attend: Plan<SparseAttention>,
    rotate_back: Plan<Rotate>,
    wo_a: Plan<GroupedLinear>,
    cast: Plan<Cast>,
    wo_b: Plan<Mxfp8Linear>,
    sink: View,
    w: AttentionWeights,
}

/// Compressed entries that a block attends to: the cache and each row's addresses in it.
#[derive(Clone, Copy)]
pub struct Selected<'a> {
    /// `[pages, entries of a page]` compressed entries.
    pub latents: &'a View,
    /// `[tokens, count]` i32 addresses.
    pub at: &'a View,
}

impl Attention {
    /// Plans for a block.
    pub fn plan(
        plans: &mut Plans<'_>,
        shape: &BlockShape<'_>,
        w: AttentionWeights,
    ) -> Result<Self> {
        let (config, d) = (shape.config, Dims::of(shape.config));
        let (eps, formats) = (Real::new(config.norm_eps), &shape.recipe.formats);
        let rotate = config.rotation(shape.ratio, d.head_dim);
        let heads = Rotate { heads: d.heads, ..rotate.clone() };
        let linear = |n, k| Mxfp8Linear { n, k };
        let attend = SparseAttention {
            heads: d.heads,
            head_dim: d.head_dim,
            window: formats.window(),
            window_count: shape.window,
            selected: (shape.ratio > 0).then(|| formats.latent(shape.ratio)),
            selected_count: if shape.ratio > 0 { config.indexer.topk as u64 } else { 0 },
            scale: Real::new((d.head_dim as f32).powf(-0.5)),
            sink: shape.recipe.sink,
            lse: false,
        };
        let (n, k) = (d.group_rank, d.group_width());
        let store = NormRotateStore { eps, rotate, cache: formats.window() };
        Ok(Self {
            wq_a: plans.plan(linear(d.rank, d.hidden))?,
            q_norm: plans.plan(RmsNormCast { width: d.rank, eps })?,
            wq_b: plans.plan(linear(d.heads * d.head_dim, d.rank))?,
            rotate: plans.plan(heads.clone())?,
            wkv: plans.beside(|plans| plans.plan(linear(d.head_dim, d.hidden)))?,
            store: plans.beside(|plans| plans.plan(store))?,
            attend: plans.plan(attend)?,
            rotate_back: plans.plan(Rotate { inverse: true, ..heads })?,
            wo_a: plans.plan(GroupedLinear { groups: d.groups, n, k })?,
            cast: plans.plan(Cast { to: Enc::Q8, width: d.groups * d.group_rank })?,
            wo_b: plans.plan(linear(d.hidden, d.groups * d.group_rank))?,
            sink: if shape.recipe.sink { w.sink.clone() } else { View::absent(Enc::F32) },
            w,
        })
    }

    /// The queries: the low-rank one, `qr8`, which the indexer needs, and those of the heads, turned.
    pub fn query(
        &self,
        on: Lane<'_>,
        x8: &View,
        position: &View,
        t: &AttentionScratch,
    ) -> Result<()> {
        on.run(&self.wq_a, Mxfp8LinearIo { x: x8, weight: &self.w.wq_a, y: &t.qr })?;
        let io = RmsNormCastIo { x: &t.qr, weight: &self.w.q_norm, y: &t.qr8 };
        on.run(&self.q_norm, io)?;
        on.run(&self.wq_b, Mxfp8LinearIo { x: &t.qr8, weight: &self.w.wq_b, y: &t.q })?;
        Ok(on.run(&self.rotate, RotateIo { x: &self.heads(&t.q)?, position })?)
    }

    /// Vectors of all heads as a rotation takes them: one head has no axis of its own.
    fn heads(&self, x: &View) -> Result<View> {
        let Rotate { heads, head_dim, .. } = *self.rotate.descriptor();
        Ok(if heads == 1 { x.clone() } else { x.split_last(heads, head_dim)? })
    }

    /// Window entries of rows with inputs `x8`, written to `at` in `window`; `kv` is scratch.
    pub fn store_window(
        &self,
        on: Lane<'_>,
        x8: &View,
        (position, at): (&View, &View),
        kv: &View,
        window: &View,
    ) -> Result<()> {
        on.run(&self.wkv, Mxfp8LinearIo { x: x8, weight: &self.w.wkv, y: kv })?;
        let weight = &self.w.kv_norm;
        let io = NormRotateStoreIo { x: kv, weight, position, at, cache: window };
        Ok(on.run(&self.store, io)?)
    }

    /// Queries and entries to `y`; [`Attention::query`] and [`Attention::store_window`] have run.
    pub fn forward(
        &self,
        on: Lane<'_>,
        rows: &Rows<'_>,
        (window, selected): (&View, Option<Selected<'_>>),
        y: &View,
        t: &AttentionScratch,
    ) -> Result<()> {
        let (w, position) = (&self.w, rows.position);
        let attend = self.attend.descriptor();
        let heads = |x: &View| x.split_last(attend.heads, attend.head_dim);
        let (q, o) = (heads(&t.q)?, heads(&t.o)?);
        let none = |enc| View::absent(enc);
        let (no_cache, no_list, no_lse) = (none(window.enc()), none(Enc::I32), none(Enc::F32));
        on.run(
            &self.attend,
            SparseAttentionIo {
                q: &q,
                window,
                window_at: rows.window_at,
                selected: selected.map_or(&no_cache, |s| s.latents),
                selected_at: selected.map_or(&no_list, |s| s.at),
                sink: &self.sink,
                y: &o,
                lse: &no_lse,
            },
        )?;
        on.run(&self.rotate_back, RotateIo { x: &self.heads(&t.o)?, position })?;
        let GroupedLinear { groups, n, k } = *self.wo_a.descriptor();
        let (x, z) = (t.o.split_last(groups, k)?, t.z.split_last(groups, n)?);
        on.run(&self.wo_a, GroupedLinearIo { x: &x, weight: &w.wo_a, y: &z })?;
        on.run(&self.cast, CastIo { x: &t.z, y: &t.z8 })?;
        Ok(on.run(&self.wo_b, Mxfp8LinearIo { x: &t.z8, weight: &w.wo_b, y })?)
    }
}
