//! Cards of the family `vision`.

mod add_rows;
mod dense_attention;
mod gated_silu;
mod gelu;
mod rotate_halves;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tower_tests;
mod unfold;
