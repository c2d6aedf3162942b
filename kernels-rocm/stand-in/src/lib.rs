//! A stand-in for `libamdhip64`: the functions of HIP that the backend uses, with simulated devices behind them. A
//! program that loads it instead of the vendor's library runs its kernels on `tandem-gfxsim`.
//!
//! # How to use it
//!
//! Building the package makes `libamdhip64.so`. `TANDEM_HIP_LIBRARY` names it to the product. Tests of packages that
//! depend on this one find it beside their own executable, in `target/<profile>/deps`.
//!
//! | variable | says | without it |
//! | --- | --- | --- |
//! | `TANDEM_SIM_DEVICES` | devices, separated by commas: `MI300X`, `MI325X`, `MI350X`, `MI355X`, or a target, `gfx942` or `gfx950` | `MI300X` |
//! | `TANDEM_SIM_SCHEDULE` | schedules that launches take in turn, separated by commas: `eager` or `lazy`, with `:` and a seed, and `+caches` where dies have caches | `eager,eager:7,lazy,lazy:11+caches` |
//! | `TANDEM_SIM_MEMORY_MIB` | memory of each device | a quarter of this machine's, shared among the devices |
//! | `TANDEM_SIM_REPORT` | a file that every diagnosis is added to as a line | stderr alone |
//!
//! # What holds
//!
//! * A device's name is the board's with `simulated` in front, so that nothing takes it for one.
//! * Each stream is a thread that does its work in order; streams wait for each other's events. Kernels of different
//!   streams and devices run at the same time, and may wait for each other's and the host's writes.
//! * What a kernel does wrong stops its device: the diagnosis is told once, and from then on the device's calls give
//!   one error, 700 for addresses, 702 for a launch without an end and 719 for everything else.
//! * Allocations lie apart, and no address is given out twice. What they hold at first is a pattern that is NaN in
//!   every format; allocations over 64 MiB hold zeros, so that what is not touched costs no memory.
//! * Captured work runs in an order that its dependencies permit and that the schedule's seed picks.
//! * Nothing panics across the boundary.
//!
//! Stricter than HIP: parameter arrays of launches, launches with arguments of another size than the kernel's,
//! captures of copies to or from pageable memory, and graphs within graphs are refused.

#![allow(unsafe_code)] // the C boundary
#![allow(non_upper_case_globals)] // numbers of HIP's header in patterns

#[allow(clippy::all, clippy::pedantic, clippy::restriction, missing_docs, non_camel_case_types, non_snake_case)]
#[allow(non_upper_case_globals, unsafe_op_in_unsafe_fn, unused, rust_2018_idioms)]
#[rustfmt::skip]
#[path = "../../src/driver/bindings.rs"]
mod bindings;
mod allocation;
mod board;
mod boundary;
mod capture;
mod code;
mod entry;
mod event;
mod handle;
mod machine;
mod module;
mod pages;
mod report;
mod settings;
mod stream;
mod work;
