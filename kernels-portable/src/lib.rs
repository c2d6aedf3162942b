//! Plain kernels of every operator but those in `src/ops/unwritten.rs`, for all GPU backends.
//!
//! Sources lie in `kernels/FAMILY/OP.cu`: blocks, shared memory, shuffles among 32 lanes and a few atomics, which the
//! compilers of all vendors take, and a host's for emulation. Each backend compiles them for its own targets, and brings a
//! header `language.h` of what its language says otherwise: `kernels/device/number.cuh` lists it.
//!
//! The host's side is `src/ops/FAMILY/OP.rs`: a [`PortableRow`] with the image, what it takes and needs, and how operands
//! that passed the operand check become launches on a [`Target`]. A backend makes a row of its table from it.
//!
//! Adding a plain kernel: the source, and the row that names it. The first also takes the operator's name off the list in
//! `src/ops/unwritten.rs`.

mod argument;
mod launcher;
pub mod ops;
mod peers;
mod proof;
mod row;
mod target;

pub use argument::{Argument, EntryArgument, TableArgument, ViewArgument};
pub use launcher::Launcher;
pub use peers::{MOST_RANKS, Peers, window_bytes};
pub use proof::{Claim, Proof, Record};
pub use row::{Accepts, Arguments, Portable, PortableRow, Run, any, arguments, refused};
pub use target::Target;
