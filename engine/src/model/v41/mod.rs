//! DeepSeek-V4.1: configuration, derived topology, tensor catalogue, byte ledger.

mod checks;
pub mod config;
mod config_keys;
mod config_read;
pub mod engram_hash;
mod pcg64;
pub mod rope;
pub mod topology;

pub use config::Config;
pub use topology::Topology;
