//! The vendor's driver, opened at run time.
//!
//! All of it starts with [`Driver::open`]: a [`Driver`] is the proof that the library is there and has every
//! function used here. `bindings.rs` is generated; `bindings.sh` beside it says from what.

#![allow(unsafe_code)]

#[allow(clippy::all, clippy::pedantic, clippy::restriction, missing_docs, non_camel_case_types, non_snake_case)]
#[allow(non_upper_case_globals, unsafe_op_in_unsafe_fn, unused, rust_2018_idioms)]
#[rustfmt::skip]
mod bindings;
mod board;
mod failure;
mod library;
mod version;

pub use board::Board;
pub use failure::{Failure, Result};
pub use library::Driver;
pub use version::Version;
