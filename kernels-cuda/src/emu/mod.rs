//! The plain kernels' own sources on the CPU, as a device of its own.
//!
//! Blocks run one after the other, the threads of a block as fibers in an order that a seed draws; barriers and
//! shuffles are real, and waiting for what never comes is an error. Numbers are the host's, with the roundings
//! of the source. What it does not know: memory of another kind than the host's (a kernel that writes far
//! outside its operands ends the process, as a fault ends a context), asynchronous copies and matrix units.
//!
//! Memory, streams and graphs are the reference's: only the arithmetic of operators that have a row here is
//! replaced.

mod device;
mod host;
mod provider;

pub use provider::EmuProvider;

#[cfg(test)]
mod tests;
