//! The models the engine runs. Nothing outside this module knows a model's name.

pub mod v41;
