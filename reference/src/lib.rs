//! Every operator in pure Rust: the judge of all backends, and a device like any other.
//!
//! * [`Card`] is an operator's other half: its arithmetic as scalar loops over host tensors, what
//!   counts as equal, and which shapes to try.
//! * [`sum`] fixes the order of every sum, so bits depend neither on host nor on threads.
//! * [`RefDevice`] runs cards behind the contract: eager, captured, in groups of ranks, with a
//!   scalar row and, where it pays, a blocked, vectorised, multi-threaded row of the same bits.
//!
//! The reference shares no helper with any kernel crate.

mod card;
mod group;
pub mod ops;
mod simd;
pub mod sum;
mod tensor;
mod tensor_mut;

pub use card::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
pub use group::Group;
pub use tensor::Tensor;
pub use tensor_mut::TensorMut;
