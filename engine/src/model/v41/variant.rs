//! Wrong models, for tests that must notice them. Only those that the engine itself gets wrong;
//! faults inside an operator belong to a wrapper around the device.

use tandem_hal::Form;

use super::config::Config;
use super::recipe::Recipe;

/// One mistake in an otherwise right model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Window latents kept in bf16 instead of FP8.
    PlainWindow,
    /// Compressed latents kept in bf16 instead of NVFP4.
    PlainLatents,
    /// Index keys kept in bf16 instead of MXFP4.
    PlainKeys,
    /// A sub-layer collapses with its own mix.
    EagerMix,
    /// No n-gram memory.
    NoEngram,
    /// No attention sink.
    NoSink,
    /// A window of one token more. The batch's window lists must be as long.
    WideWindow,
    /// Base 150000 instead of 160000 in layers that compress.
    OtherBase,
    /// Layers that compress rotate without YaRN.
    NoYarn,
    /// No coarse selection.
    NoCandidates,
}

impl Variant {
    /// Every variant.
    pub const ALL: [Variant; 10] = [
        Variant::PlainWindow,
        Variant::PlainLatents,
        Variant::PlainKeys,
        Variant::EagerMix,
        Variant::NoEngram,
        Variant::NoSink,
        Variant::WideWindow,
        Variant::OtherBase,
        Variant::NoYarn,
        Variant::NoCandidates,
    ];

    /// The mistake, made in a configuration and the recipe made from it.
    pub fn of(self, config: &Config) -> (Config, Recipe) {
        let mut config = config.clone();
        match self {
            Self::WideWindow => config.attention.window_tokens += 1,
            Self::OtherBase => config.rope.compressed_base = 150_000.0,
            // A factor of one divides nothing.
            Self::NoYarn => config.rope.factor = 1.0,
            Self::NoCandidates => config.compression.candidate_source = None,
            _ => {}
        }
        let mut recipe = Recipe::of(&config);
        match self {
            Self::PlainWindow => recipe.formats.window.form = Form::Bf16,
            Self::PlainLatents => recipe.formats.latent.form = Form::Bf16,
            Self::PlainKeys => recipe.formats.key.form = Form::Bf16,
            Self::EagerMix => recipe.delayed_mix = false,
            Self::NoEngram => recipe.engram = false,
            Self::NoSink => recipe.sink = false,
            _ => {}
        }
        (config, recipe)
    }
}
