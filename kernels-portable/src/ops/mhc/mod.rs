//! Plain rows of the `mhc` operators.

mod collapse;
mod collapse_norm;
mod expand;
mod mean;
mod mixes;
mod start;
