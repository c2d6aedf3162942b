//! Mixture of experts.

pub mod add_shared;
pub mod combine;
pub mod combine_scaled;
pub mod down;
pub mod expert_down;
pub mod expert_up;
pub mod gate_up;
pub mod route;
pub mod route_grouped;
pub mod route_hash;
pub mod swiglu;

pub use add_shared::{AddShared, AddSharedIo};
pub use combine::{Combine, CombineIo};
pub use combine_scaled::{CombineScaled, CombineScaledIo, ScalePlacement};
pub use down::{Down, DownIo};
pub use expert_down::{ExpertDown, ExpertDownIo};
pub use expert_up::{ExpertUp, ExpertUpIo};
pub use gate_up::{Experts, GateUp, GateUpIo};
pub use route::{Route, RouteIo};
pub use route_grouped::{RouteGrouped, RouteGroupedIo};
pub use route_hash::{RouteHash, RouteHashIo};
pub use swiglu::{Swiglu, SwigluIo};
