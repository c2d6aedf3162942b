//! The parts of the arithmetic that a mutation test may take away.

use super::caches::CacheFormats;
use super::config::Config;

/// How a block computes, beyond its sizes. Outside tests there is one recipe: [`Recipe::of`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// A sub-layer's input is collapsed with the mix of the sub-layer before.
    pub delayed_mix: bool,
    /// The softmax has a sink.
    pub sink: bool,
    /// Layers that have an n-gram memory use it.
    pub engram: bool,
    /// Records of the caches.
    pub formats: CacheFormats,
}

impl Recipe {
    /// The release's own.
    pub fn of(config: &Config) -> Self {
        let formats = CacheFormats::of(config);
        Self { delayed_mix: true, sink: true, engram: true, formats }
    }
}
