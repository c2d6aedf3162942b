//! The vendor's driver, opened at run time, behind types that free what they hold.
//!
//! All of it starts with [`Driver::open`]: a [`Driver`] is the proof that the library is there, is new
//! enough and has every function used here. The bindings panic where one is missing, so nothing else
//! may call them first.
//!
//! Memory is freed only after every [`Queue`] of its [`Context`] has passed, so that dropping a handle
//! is always safe; queues that are being captured hold nothing in flight.

#![allow(unsafe_code)]

mod board;
mod context;
mod event;
mod failure;
mod file_mapping;
mod graph;
mod guard;
mod launch;
mod library;
mod module;
mod pending;
mod queue;
mod reservation;
mod ring;
mod span;
mod staging;
mod tensor_map;
mod window;

pub use board::Board;
pub use context::Context;
pub use event::Event;
pub use failure::{Failure, Result};
pub use file_mapping::FileMapping;
pub use graph::ExecutableGraph;
pub use guard::Driver;
pub use launch::Shape;
pub use module::{Function, Module};
pub use pending::Pending;
pub use queue::Queue;
pub use reservation::Reservation;
pub use span::Span;
pub use staging::Staging;
pub use tensor_map::{TensorMap, Tile};

// What launches take.
pub use tandem_portable::{Argument, EntryArgument, ViewArgument};
