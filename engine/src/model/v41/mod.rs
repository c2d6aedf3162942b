//! DeepSeek-V4.1: configuration, derived topology, tensor catalogue, byte ledger.

pub mod caches;
mod checks;
pub mod config;
mod config_keys;
mod config_read;
pub mod engram_hash;
pub mod ledger;
pub mod names;
mod names_check;
mod pcg64;
pub mod rope;
pub mod topology;

pub use caches::{CacheFormats, Caches, Pools, SourceCaches};
pub use config::Config;
pub use ledger::Ledger;
pub use topology::Topology;
