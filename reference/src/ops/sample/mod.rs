//! Cards of the family `sample`.

pub(super) mod draw;
mod filter;
mod log_probs;
mod mask;
mod penalise;

#[cfg(test)]
mod tests;
