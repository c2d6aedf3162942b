//! Plain rows of the `moe` operators.

mod add_shared;
mod combine;
mod combine_scaled;
mod down;
mod expert_down;
mod expert_up;
pub mod experts;
mod gate_up;
mod route;
mod route_grouped;
mod route_hash;
mod swiglu;
