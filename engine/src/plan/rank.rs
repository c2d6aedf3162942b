//! The weights of one rank, shared as the loader shares them.

use super::board::Placement;
use super::request::Limits;
use crate::model::v41::Config;
use crate::model::v41::names::{Part, Place, catalogue};

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

/// Sums the catalogue, each tensor as the file stores it: kernels read codes and scales. Ranks hold
/// equal ranges of the routed experts and of the head's rows, and whole copies of everything else,
/// as [`crate::weights::Share`] has it.
pub fn weights(config: &Config, limits: &Limits) -> Weights {
    let mut weights = Weights { device: Vec::new(), host: Vec::new() };
    let mut shared = Vec::new();
    for tensor in catalogue(config) {
        if tensor.part == Part::Vision && limits.pictures == 0 {
            continue;
        }
        if matches!(tensor.place, Place::Draft(_)) && limits.draft_tokens == 0 {
            continue;
        }
        let (label, bytes) = (label(tensor.part), tensor.length_bytes());
        match tensor.part {
            Part::EngramTables if limits.engram == Placement::Host => {
                add(&mut weights.host, label, bytes);
            }
            Part::BackboneExperts | Part::DraftExperts | Part::Head => {
                // Holds the label's place among the lines.
                add(&mut weights.device, label, 0);
                add(&mut shared, label, bytes);
            }
            _ => add(&mut weights.device, label, bytes),
        }
    }
    for Item { label, bytes } in shared {
        add(&mut weights.device, label, bytes / limits.tensor_parallel as u64);
    }
    weights
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
        let (embedding, norm) = (1_323_827_200, 10_240);
        let ends = embedding + embedding / 8 + norm;
        assert_eq!(bytes(&eighth.device, "embedding and head"), Some(ends));
        assert_eq!(bytes(&eighth.device, "shared experts"), Some(1_415_577_600 + 1_382_400));
        assert_eq!(bytes(&eighth.device, "vision tower"), Some(970_536_960));
        assert_eq!(bytes(&eighth.host, "Engram tables"), Some(202_758_032_400));
        request.engram = Some(Placement::Device);
        let resident = weights(&config, &request.limits(&config).unwrap());
        assert_eq!(bytes(&resident.device, "Engram tables"), Some(202_758_032_400));
        request.draft_tokens = Some(0);
        request.pictures = Some(0);
        let bare = weights(&config, &request.limits(&config).unwrap());
        assert_eq!(bytes(&bare.device, "draft stages"), None);
        assert_eq!(bytes(&bare.device, "vision tower"), None);
    }
}
