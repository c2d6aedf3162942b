//! The kernels' own sources on the CPU, as a device of its own.
//!
//! Blocks run one after the other, those of a cluster together; their threads are fibers in an order that a seed draws.
//! Barriers and shuffles are real, and waiting for what never comes is an error. Copies and matrix products of Hopper
//! happen at moments of the schedule, as late as can be, at once or at any time; what they are to fill holds NaN until
//! then. Numbers are the host's, with the roundings of the source, and the matrix units' with the bits of an H200.
//! A kernel that touches memory which the process does not have fails its launch, as a fault ends a context.
//! What it does not know: memory of another kind than the host's, and instructions of Blackwell.
//!
//! Memory, streams and graphs are the reference's: only the arithmetic of operators that have a row here is
//! replaced.

mod device;
mod host;
mod provider;

pub use provider::EmuProvider;

#[cfg(test)]
mod f64_schedules;
#[cfg(test)]
mod mix_schedules;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod score_schedules;
#[cfg(test)]
mod sparse_schedules;
#[cfg(test)]
mod tests;
