//! Executes compiled code objects of gfx942 and gfx950 (MI300X, MI325X; MI350X, MI355X), instruction by
//! instruction, on any machine: what runs is what would ship, so that the compiler's output, waits, races, bounds
//! and layouts are put to the test, and not only the source.
//!
//! ```no_run
//! use std::sync::Arc;
//! use tandem_gfxsim::{Access, CodeObject, Dispatch, Memory, Schedule, launch};
//!
//! let object = Arc::new(CodeObject::load(&std::fs::read("add.gfx942.hsaco")?)?);
//! let mut memory = Memory::new();
//! let module = memory.load(&object);
//! let x = memory.allocate("x", &[0; 4096], Access::ReadWrite);
//! let dispatch = Dispatch {
//!     module: &module,
//!     kernel: "add",
//!     grid: [16, 1, 1],
//!     block: [64, 1, 1],
//!     arguments: &x.to_le_bytes(),
//!     dynamic_lds_bytes: 0,
//! };
//! for schedule in Schedule::four() {
//!     let counters = launch(&memory, &dispatch, &schedule)?;
//!     println!("{} instructions", counters.steps);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is checked
//!
//! * Every access lies within a region, and writes go to regions that may be written.
//! * No register is used while a load to it may be in flight. Loads and stores happen at issue or as late as
//!   waits permit ([`Timing`]), waves take turns in order or pseudo-randomly ([`Schedule::seed`]): a right kernel
//!   gives the same bits under all.
//! * LDS is written before it is read, and between two barriers a byte is touched by one wave, or only read, or
//!   only changed by atomic operations.
//! * Registers begin with values that differ from schedule to schedule and are NaN as floating-point numbers.
//! * A launch ends within a number of steps.
//!
//! Dies may have caches of their own ([`Schedule::caches`]), which hold writes back and give stale bytes until
//! instructions say otherwise: workgroup i is on die i mod 8, and what is missing between two shows in the bits.
//!
//! What the simulator has no meaning for, a mnemonic, an operand, a modifier, is refused when the code object is
//! loaded.
//!
//! # What it is tested against
//!
//! Cases worked by hand from the manual and the published layouts; objects that Triton's compiler makes of linears in
//! every format and of reductions, which give the numbers that our own kernels give; kernels that are wrong on purpose,
//! and rules of its own that are.
//!
//! # What is not modelled
//!
//! Time, caches other than those, scopes beyond a device (what leaves a die is seen by all), hazards that the compiler
//! must pad with waiting states, rounding of scaled matrix products (they are exact and rounded once), payloads of
//! NaN. First approximations of reciprocals and roots are those that the hardware promises at least.
//!
//! # Where things are
//!
//! * `object`: the file: kernels, descriptors, notes; the disassembler, which is LLVM's.
//! * `decode`: from its text to typed instructions.
//! * `class`: what instructions do, a file and a table for each class.
//! * `machine`: waves, memory, LDS, what is in flight, schedules.
//! * `number`: small floating-point formats and how matrix units add.

#[cfg(test)]
extern crate self as tandem_gfxsim;

mod class;
mod counters;
mod decode;
mod error;
mod fault;
mod machine;
mod number;
mod object;
mod schedule;
// Layouts are put to the test by what the integration tests check.
#[cfg(test)]
#[path = "../tests/sim/matrices.rs"]
mod matrices;
#[cfg(test)]
#[path = "../tests/sim/support.rs"]
#[allow(dead_code)]
mod support;
mod target;

pub use counters::Counters;
pub use error::{LaunchError, LoadError};
pub use fault::{Fault, FaultKind, Register};
pub use machine::{Access, Dispatch, Lent, Memory, Module, launch, launch_together};
pub use object::{CodeObject, Resources};
pub use schedule::{MatrixRule, Schedule, Timing};
pub use target::Target;
