//! Who reads whose cache and whose selection: derived from the configuration, layer by layer.

use super::config::Config;

/// What layer 0 to the last do, and what the draft needs of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// One entry per backbone layer.
    pub layers: Vec<LayerTopology>,
}

/// One backbone layer's place in the network. Every layer has its own sliding window besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerTopology {
    /// Tokens per compressed entry; 0 when the layer attends to its window only.
    pub ratio: usize,
    /// The layer whose compressed cache and index keys are read; itself for an owner.
    pub kv_source: Option<usize>,
    /// The layer whose selected entries are used; itself for an owner.
    pub index_source: Option<usize>,
    /// The layer writes a compressed cache and index keys.
    pub owns_cache: bool,
    /// The layer's compressor weighs the tokens of a group (ratios above 1).
    pub owns_gate: bool,
    /// The layer scores index keys and selects.
    pub owns_selection: bool,
    /// Part in the coarse selection.
    pub candidates: Candidates,
    /// Index into the Engram layers when rows are added before this block.
    pub engram: Option<usize>,
    /// Index into the draft's captures when this layer's input is one.
    pub capture: Option<usize>,
}

/// A layer's part in the coarse selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// None.
    None,
    /// Publishes the candidate blocks; its own selection is not restricted to them.
    Publishes,
    /// Selects only among the published candidates.
    Restricted,
}

impl Config {
    /// The topology of the backbone. Draft stages have none: they are window-only.
    pub fn topology(&self) -> Topology {
        let layers = (0..self.layers).map(|layer| self.layer_topology(layer)).collect();
        Topology { layers }
    }

    pub(super) fn layer_topology(&self, layer: usize) -> LayerTopology {
        let compression = &self.compression;
        let ratio = compression.ratios[layer];
        let last = |sources: &[usize]| {
            let below = sources.iter().copied().filter(|source| *source <= layer).max();
            below.filter(|_| ratio > 0)
        };
        let owns_cache = compression.kv_sources.contains(&layer);
        let owns_selection = compression.index_sources.contains(&layer);
        let candidates = match compression.candidate_source {
            Some(source) if layer == source => Candidates::Publishes,
            Some(source) if layer > source && owns_selection => Candidates::Restricted,
            _ => Candidates::None,
        };
        let engram = self.engram.as_ref().and_then(|engram| place(&engram.layers, layer));
        let capture = self.dspark.as_ref().and_then(|dspark| place(&dspark.target_layers, layer));
        LayerTopology {
            ratio,
            kv_source: last(&compression.kv_sources),
            index_source: last(&compression.index_sources),
            owns_cache,
            owns_gate: owns_cache && ratio > 1,
            owns_selection,
            candidates,
            engram,
            capture,
        }
    }
}

fn place(list: &[usize], layer: usize) -> Option<usize> {
    list.iter().position(|entry| *entry == layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_has_the_published_topology() {
        let layers = Config::named("v4.1-flash").unwrap().topology().layers;
        let sources = |layer: usize| {
            let layer = &layers[layer];
            (layer.ratio, layer.kv_source, layer.index_source)
        };
        assert_eq!(sources(0), (0, None, None));
        assert_eq!(sources(1), (0, None, None));
        for (layer, expected) in [
            (2, (2, 2, 2)),
            (7, (2, 2, 2)),
            (8, (2, 8, 8)),
            (13, (2, 8, 8)),
            (14, (2, 14, 14)),
            (19, (2, 14, 14)),
            (20, (1, 20, 20)),
            (23, (1, 20, 20)),
            (24, (1, 20, 24)),
            (27, (1, 20, 24)),
            (28, (1, 20, 28)),
            (35, (1, 20, 32)),
            (36, (1, 20, 36)),
            (39, (1, 20, 36)),
        ] {
            assert_eq!(sources(layer), (expected.0, Some(expected.1), Some(expected.2)));
        }
        let which = |property: fn(&LayerTopology) -> bool| -> Vec<usize> {
            (0..40).filter(|layer| property(&layers[*layer])).collect()
        };
        assert_eq!(which(|l| l.owns_cache), [2, 8, 14, 20]);
        assert_eq!(which(|l| l.owns_gate), [2, 8, 14]);
        assert_eq!(which(|l| l.owns_selection), [2, 8, 14, 20, 24, 28, 32, 36]);
        assert_eq!(which(|l| l.candidates == Candidates::Publishes), [20]);
        assert_eq!(which(|l| l.candidates == Candidates::Restricted), [24, 28, 32, 36]);
        assert_eq!(which(|l| l.engram.is_some()), [1, 14]);
        assert_eq!(which(|l| l.capture.is_some()), [37, 38, 39]);
        assert_eq!((layers[14].engram, layers[39].capture), (Some(1), Some(2)));
    }
}
