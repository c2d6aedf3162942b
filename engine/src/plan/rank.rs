//! The weights of one rank, by tensor parallel over the catalogue's splits.

use super::board::Placement;
use super::request::Limits;
use crate::model::v41::Config;
use crate::model::v41::names::{Expected, Part, Place, Split, catalogue};

/// A labelled number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What they are for.
    pub label: &'static str,
    /// How many.
    pub bytes: u64,
}

/// Weights on one rank's device, and on the host once per node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// On the device.
    pub device: Vec<Item>,
    /// On the host.
    pub host: Vec<Item>,
}

/// Sums the catalogue, each tensor as the file stores it: kernels read codes and scales.
pub fn weights(config: &Config, limits: &Limits) -> Weights {
    let mut weights = Weights { device: Vec::new(), host: Vec::new() };
    for tensor in catalogue(config) {
        if tensor.part == Part::Vision && !limits.vision {
            continue;
        }
        if matches!(tensor.place, Place::Draft(_)) && limits.draft_tokens == 0 {
            continue;
        }
        if tensor.part == Part::EngramTables && limits.engram == Placement::Host {
            add(&mut weights.host, "Engram tables", tensor.length_bytes());
        } else {
            let share = share_bytes(&tensor, limits.tensor_parallel as u64);
            add(&mut weights.device, label(tensor.part), share);
        }
    }
    weights
}

/// Bytes of a tensor on the rank that holds most of it.
pub fn share_bytes(tensor: &Expected, ranks: u64) -> u64 {
    let bytes = tensor.length_bytes();
    match tensor.split {
        Split::Whole => bytes,
        Split::Rows => bytes / tensor.shape[0] * tensor.shape[0].div_ceil(ranks),
        Split::Columns => bytes / tensor.shape[1] * tensor.shape[1].div_ceil(ranks),
    }
}

pub(super) fn add(items: &mut Vec<Item>, label: &'static str, bytes: u64) {
    match items.iter_mut().find(|item| item.label == label) {
        Some(item) => item.bytes += bytes,
        None => items.push(Item { label, bytes }),
    }
}

fn label(part: Part) -> &'static str {
    match part {
        Part::BackboneExperts => "routed experts",
        Part::SharedExperts => "shared experts",
        Part::DraftExperts | Part::DraftDense => "draft stages",
        Part::EngramTables => "Engram tables",
        Part::EngramProjection | Part::EngramGate => "Engram projections",
        Part::QueryDown
        | Part::QueryUp
        | Part::Latent
        | Part::OutputDown
        | Part::OutputUp
        | Part::Sinks => "attention",
        Part::IndexQuery
        | Part::IndexWeights
        | Part::IndexKey
        | Part::IndexKeyNorm
        | Part::CompressorLatent
        | Part::CompressorGate
        | Part::CompressorNorm => "indexers and compressors",
        Part::Router | Part::RouterBiases | Part::HyperConnections | Part::LayerNorms => {
            "routers, mixes and norms"
        }
        Part::Embedding | Part::Head | Part::FinalNorm => "embedding and head",
        Part::Vision => "vision tower",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Boards, Request};

    #[test]
    fn one_rank_holds_the_checkpoint() {
        let config = Config::named("v4.1-flash").unwrap();
        let mut request = Request::new(Boards::parse("mi355xx8").unwrap());
        request.tensor_parallel = Some(1);
        request.engram = Some(Placement::Device);
        let whole = weights(&config, &request.limits(&config).unwrap());
        assert!(whole.host.is_empty());
        assert_eq!(whole.device.iter().map(|item| item.bytes).sum::<u64>(), 510_286_023_000);
    }

    #[test]
    fn ranks_hold_shares_and_copies() {
        let config = Config::named("v4.1-flash").unwrap();
        let mut request = Request::new(Boards::parse("h200x8").unwrap());
        request.tensor_parallel = Some(8);
        let eighth = weights(&config, &request.limits(&config).unwrap());
        let bytes = |items: &[Item], label| {
            items.iter().find(|item| item.label == label).map(|item| item.bytes)
        };
        let experts = (271_790_899_200 + 16_986_931_200) / 8;
        assert_eq!(bytes(&eighth.device, "routed experts"), Some(experts));
        assert_eq!(bytes(&eighth.device, "vision tower"), Some(970_536_960));
        assert_eq!(bytes(&eighth.host, "Engram tables"), Some(202_758_032_400));
        // The second table's rows do not divide by 8: the largest share is rounded up.
        request.engram = Some(Placement::Device);
        let resident = weights(&config, &request.limits(&config).unwrap());
        let rows = 384_006_168 / 8 + 384_016_682_u64.div_ceil(8);
        assert_eq!(bytes(&resident.device, "Engram tables"), Some(rows * 264));
        request.draft_tokens = Some(0);
        request.text_only = true;
        let bare = weights(&config, &request.limits(&config).unwrap());
        assert_eq!(bytes(&bare.device, "draft stages"), None);
        assert_eq!(bytes(&bare.device, "vision tower"), None);
    }
}
