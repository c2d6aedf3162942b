//! Weights of the picture tower.

use tandem_hal::{Device, Elem, View};

use super::config::{Config, Vision};
use super::vision_sizes::{Sizes, vision};
use crate::error::Result;
use crate::weights::{Loader, Module, Progress, Source, load};

/// A matrix with its bias.
pub(super) struct Biased {
    pub(super) weight: View,
    pub(super) bias: View,
}

impl Biased {
    fn load(module: &mut Module<'_, '_>, name: &str, n: u64, k: u64) -> Result<Self> {
        let weight = module.dense(&format!("{name}.weight"), Elem::Bf16, [n, k])?;
        let bias = module.plain(&format!("{name}.bias"), Elem::Bf16, &[n])?;
        Ok(Self { weight, bias })
    }
}

/// Weights of one block of full attention.
pub(super) struct BlockWeights {
    pub(super) norm1: View,
    pub(super) wqkv: Biased,
    pub(super) wo: Biased,
    pub(super) norm2: View,
    pub(super) w1: View,
    pub(super) w2: View,
}

impl BlockWeights {
    fn load(module: &mut Module<'_, '_>, block: usize, v: &Sizes) -> Result<Self> {
        let prefix = format!("vision.blocks.{block}");
        let norm = |module: &mut Module<'_, '_>, name: &str| {
            module.plain(&format!("{prefix}.{name}.weight"), Elem::Bf16, &[v.width])
        };
        Ok(Self {
            norm1: norm(module, "norm1")?,
            wqkv: Biased::load(module, &format!("{prefix}.attn.wqkv"), 3 * v.width, v.width)?,
            wo: Biased::load(module, &format!("{prefix}.attn.wo"), v.width, v.width)?,
            norm2: norm(module, "norm2")?,
            w1: module.dense(
                &format!("{prefix}.mlp.w1.weight"),
                Elem::Bf16,
                [2 * v.inter, v.width],
            )?,
            w2: module.dense(&format!("{prefix}.mlp.w2.weight"), Elem::Bf16, [v.width, v.inter])?,
        })
    }
}

/// Weights of tower, aligner and markers.
pub struct TowerWeights {
    pub(super) patch: Biased,
    pub(super) blocks: Vec<BlockWeights>,
    pub(super) norm: View,
    pub(super) aligner: [Biased; 2],
    /// `[1, hidden]` each: start, newline, end.
    pub(super) markers: [View; 3],
}

impl TowerWeights {
    /// Reads them onto a device.
    ///
    /// # Errors
    /// [`crate::error::Error::Argument`] for a text-only model, else as [`load()`].
    pub fn load(
        device: &dyn Device,
        config: &Config,
        source: &Source<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let vision = vision(config)?;
        load(device, source, progress, |loader| Self::read(loader, config, vision))
    }

    fn read(loader: &mut Loader<'_>, config: &Config, vision: &Vision) -> Result<Self> {
        let v = Sizes::of(config, vision);
        let (patch, norm) = loader.module("vision.patch", |module| {
            let patch = Biased::load(module, "vision.patch_embed.proj", v.width, v.pixels)?;
            Ok((patch, module.plain("vision.norm.weight", Elem::Bf16, &[v.width])?))
        })?;
        let blocks = (0..vision.layers).map(|block| {
            loader.module(&format!("vision.blocks.{block}"), |m| BlockWeights::load(m, block, &v))
        });
        let blocks = blocks.collect::<Result<_>>()?;
        let (aligner, markers) = loader.module("aligner", |module| {
            let w1 = Biased::load(module, "aligner.w1", v.hidden, v.merged())?;
            let w2 = Biased::load(module, "aligner.w2", v.hidden, v.hidden)?;
            let mut marker = |name| module.plain(name, Elem::Bf16, &[v.hidden]);
            let markers = [marker("image_start")?, marker("image_newline")?, marker("image_end")?];
            Ok(([w1, w2], markers))
        })?;
        let [start, newline, end] = markers;
        // While bytes are only added up there are no views to shape.
        let row =
            |view: View| if view.is_empty() { Ok(view) } else { view.split_last(1, v.hidden) };
        let markers = [row(start)?, row(newline)?, row(end)?];
        Ok(Self { patch, blocks, norm, aligner, markers })
    }
}
