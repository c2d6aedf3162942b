//! DeepSeek-V4.1: configuration, derived topology, tensor catalogue, byte ledger; and the model
//! itself, one file per block.

#[macro_use]
mod buffers;
pub mod attention;
pub mod block;
pub mod caches;
mod caches_random;
mod checks;
pub mod compressor;
pub mod config;
mod config_keys;
mod config_read;
mod cut;
pub mod dspark;
pub mod engram;
pub mod engram_hash;
pub mod head;
pub mod indexer;
pub mod lanes;
pub mod layer;
pub mod ledger;
pub mod mhc;
pub mod model;
pub mod moe;
pub mod names;
mod names_check;
mod pcg64;
pub mod plans;
pub mod recipe;
pub mod resident;
pub mod rope;
mod rotation;
pub mod topology;
#[cfg(feature = "variants")]
pub mod variant;
mod vision_sizes;
pub mod vision_tower;
mod vision_weights;
pub mod weights;

pub use caches::{CacheFormats, Caches, Pools, SourceCaches};
pub use config::Config;
pub use ledger::Ledger;
pub use model::{Limits, Model, Outcome, Scratch};
pub use recipe::Recipe;
pub use resident::Resident;
pub use topology::Topology;
#[cfg(feature = "variants")]
pub use variant::Variant;
pub use weights::ModelWeights;
