//! Every operator in pure Rust: the judge of all backends, and a device like any other.
//!
//! * [`Card`] is an operator's other half: its arithmetic as scalar loops over host tensors, what
//!   counts as equal, and which shapes to try.
//! * [`sum`] fixes the order of every sum, so bits depend neither on host nor on threads.
//! * [`RefDevice`] runs cards behind the contract: eager, captured, in groups of ranks, with a
//!   scalar row and, where it pays, a blocked, vectorised, multi-threaded row of the same bits.
//!
//! The reference shares no helper with any kernel crate.

#[cfg(test)]
mod buffer;
mod card;
pub mod compare;
mod data;
mod device;
mod group;
mod launch;
mod layout;
mod memory;
pub mod ops;
mod order;
mod profile;
mod provider;
mod random;
mod simd;
mod stream;
pub mod sum;
mod tensor;
mod tensor_mut;
mod threads;

pub use card::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
pub use data::Fill;
pub use device::{RefDevice, Setup};
pub use group::Group;
pub use launch::{Arithmetic, Around, Slots, Trespass};
pub use layout::Weights;
pub use profile::Profile;
pub use provider::RefProvider;
pub use random::Random;
pub use tensor::Tensor;
pub use tensor_mut::TensorMut;
