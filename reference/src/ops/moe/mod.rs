//! Cards of the family `moe`.

mod add_shared;
mod combine;
mod combine_scaled;
mod down;
mod expert_down;
mod expert_up;
mod gate_up;
mod route;
mod route_grouped;
mod route_hash;
mod swiglu;
