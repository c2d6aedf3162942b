//! The built library, opened and called as a program does, with the bindings that the backend has.

#![allow(unsafe_code)] // calls of the library

#[allow(unsafe_code, clippy::all, clippy::pedantic, clippy::restriction, missing_docs, non_camel_case_types)]
#[allow(non_snake_case, non_upper_case_globals, unsafe_op_in_unsafe_fn, unused, rust_2018_idioms)]
#[rustfmt::skip]
#[path = "../../../src/driver/bindings.rs"]
mod bindings;
mod beside;
mod captures;
mod devices;
mod faults;
mod kernels;
mod memory;
mod streams;
mod support;
