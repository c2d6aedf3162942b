//! The machine: waves, memory, LDS, and what may happen in which order.

mod banks;
mod execution;
mod launch;
mod lds;
mod memory;
mod queue;
mod source;
mod transfer;
mod wave;
mod workgroup;

pub(crate) use execution::Step;
pub use launch::{Dispatch, launch, launch_together};
pub use memory::{Access, Memory, Module};
pub(crate) use memory::{PRIVATE_BASE, SHARED_BASE};
pub(crate) use queue::Queues;
pub(crate) use source::{Kind, Part, Source, Swizzle, Whence};
pub(crate) use transfer::{Action, Form, Space, Transfer};
pub(crate) use wave::{EXEC, LANES, Lanes, M0, VCC, Wave, blend};
