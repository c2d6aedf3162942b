//! Compiled kernels, executed: sources in `tests/kernels`, objects beside them in `tests/objects`.

mod arithmetic;
mod coherence;
mod deletions;
mod faults;
mod groups;
mod matrices;
mod objects;
mod shipped;
mod speed;
mod support;
mod threads;
mod triton;
