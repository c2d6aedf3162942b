//! The contract between devices, operators and whoever runs them.
//!
//! Ten minutes, top down:
//!
//! * A [`Device`] owns memory and streams. [`Provider`]s list and open them.
//! * A [`View`] is a cheap handle on bytes of one device: offset, [`Enc`], [`Layout`], shape. It
//!   keeps its memory alive; it is not a borrow.
//! * An [`Operator`] is a descriptor: static sizes and formats, nothing that changes from launch to
//!   launch. [`Op`] is the closed enum of all of them, made from the one list in [`ops`].
//! * Operands are one struct of named fields per operator ([`io!`](crate::io)), held with views by the engine,
//!   with [`Operand`] specifications by the contract, with host tensors by the reference.
//! * [`Device::plan`](trait@Device) picks a kernel row and sizes its workspace; it may fail.
//!   [`Plan::launch`] checks the operands once ([`Checked`]) and runs; it allocates nothing.
//! * A fused operator writes itself as steps over others ([`Operator::decompose`]), so a new
//!   backend needs the primitives only.
//! * Rows with equal `bits` are bitwise equal and form a ladder ([`Ladder`]) that covers every token
//!   count, so the size of a batch may choose speed but never a result.
//!
//! This crate contains no GPU code, no `unsafe` and no dependency but `half`.

#[macro_use]
mod line;
mod compose;
mod device;
mod elem;
mod error;
mod fingerprint;
mod judgement;
mod ledger;
mod library;
pub mod null;
pub mod num;
mod op;
pub mod ops;
mod plan;
mod provider;
mod rates;
mod real;
mod record;
mod stream;
mod table;
mod tape;
mod view;

pub use compose::{Ref, STEPS, Steps, steps_bits};
pub use device::{
    Candidate, Capabilities, Device, DeviceId, DeviceInfo, Dialect, Kernel, Needs, Numerics, Place,
    Want,
};
pub use elem::{Elem, Enc};
pub use error::{Error, Result};
pub use fingerprint::Fingerprint;
pub use ledger::{Ledger, LedgerLine};
pub use library::find_library;
pub use line::Line;
pub use op::{
    Class, Cost, Dim, Dir, Domain, Extents, Facts, IndexBound, IoSet, Operand, Operator, SYMS,
    Slot, Sym,
};
pub use ops::*;
pub use plan::{Checked, Lane, MAX_OPERANDS, Plan, Side};
pub use provider::{Options, Provider};
pub use rates::{Floor, Rates};
pub use real::Real;
pub use record::{Form, Record};
pub use stream::{Graph, Stream, Ticket};
pub use table::{Accumulator, Judge, Ladder, PORTABLE, Proven, Rank, Row, Verdict, is_fused};
pub use tape::{Launch, Tape};
pub use view::{Alloc, Arena, Layout, Shape, View};
