//! Tuned rows of the `moe` operators.

mod down;
mod expert_down;
mod expert_up;
mod gate_up;
mod tiles;
