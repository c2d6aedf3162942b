//! The vendor's driver, opened at run time.
//!
//! All of it starts with [`Driver::open`]: a [`Driver`] is the proof that the library is there and has every
//! function used here. `bindings.rs` is generated; `bindings.sh` beside it says from what.
//!
//! Memory is freed only after every [`Queue`] of its [`Context`] has passed, so that dropping a handle
//! is always safe; queues that are being captured hold nothing in flight.

#![allow(unsafe_code)]
// The headers' names in patterns.
#![allow(non_upper_case_globals)]

#[allow(clippy::all, clippy::pedantic, clippy::restriction, missing_docs, non_camel_case_types, non_snake_case)]
#[allow(non_upper_case_globals, unsafe_op_in_unsafe_fn, unused, rust_2018_idioms)]
#[rustfmt::skip]
mod bindings;
mod board;
mod context;
mod event;
mod failure;
mod file_mapping;
mod graph;
mod library;
mod module;
mod pending;
mod queue;
mod reservation;
mod ring;
mod span;
mod staging;
mod version;

pub use board::Board;
pub use context::Context;
pub use event::Event;
pub use failure::{Failure, Result};
pub use file_mapping::FileMapping;
pub use graph::ExecutableGraph;
pub use library::Driver;
pub use module::{Function, Module};
pub use pending::Pending;
pub use queue::Queue;
pub use reservation::Reservation;
pub use span::Span;
pub use staging::Staging;
pub use version::Version;
