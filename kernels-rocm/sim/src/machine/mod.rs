//! The machine: waves, memory, LDS, and what may happen in which order.

mod banks;
mod die;
mod dispatch;
mod execution;
mod launch;
mod lds;
mod memory;
mod queue;
mod region;
mod source;
mod transfer;
mod turnstile;
mod wave;
mod workgroup;

pub(crate) use die::Scope;
pub use dispatch::Dispatch;
pub(crate) use execution::Step;
pub use launch::{launch, launch_together};
pub use memory::{Memory, Module};
pub(crate) use memory::{PRIVATE_BASE, SHARED_BASE};
pub(crate) use queue::Queues;
pub use region::{Access, Lent};
pub(crate) use source::{Kind, Part, Source, Swizzle, Whence};
pub(crate) use transfer::{Action, Form, Space, Transfer};
pub(crate) use wave::{EXEC, LANES, Lanes, M0, VCC, Wave, blend};
