//! The n-gram memory.

pub mod gate;
pub mod hash;
pub mod lookup;

pub use gate::{EngramGate, EngramGateIo};
pub use hash::{EngramHash, EngramHashIo};
pub use lookup::{EngramLookup, EngramLookupIo};
