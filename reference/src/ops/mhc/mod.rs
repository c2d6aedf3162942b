//! Cards of the family `mhc`.

mod collapse;
mod collapse_norm;
mod expand;
mod mean;
mod mixes;
mod start;
mod streams;
#[cfg(test)]
mod tests;
