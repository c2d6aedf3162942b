//! Plain rows of the `vision` operators.

mod add_rows;
mod dense_attention;
mod gated_silu;
mod gelu;
mod rotate_halves;
mod unfold;
