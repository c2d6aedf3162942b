//! Tuned rows of the `moe` operators.

mod down;
mod gate_up;
mod tiles;
