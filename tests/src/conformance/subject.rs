//! One kernel row under test, and the case it is tested with.

use super::{bench::Bench, case::Data, stage::Seen};
use std::sync::Arc;
use tandem_hal::{Accumulator, Device, Numerics};

/// Devices of one group, one a rank.
pub type Group = Vec<Arc<dyn Device>>;

/// A row with a case.
pub struct Subject<'a> {
    /// The case on devices where the row is forced.
    pub bench: Bench<'a>,
    /// What the row promises.
    pub promise: Numerics,
    /// Its bits.
    pub bits: &'static str,
    /// What it adds products in.
    pub accumulator: Accumulator,
    /// A device like it, for memory and streams that are not its own.
    pub stranger: &'a Arc<dyn Device>,
    /// Devices without an override.
    pub free: &'a Group,
    /// Devices where the steps of a fused operator have the bits that the row names.
    pub steps: &'a Group,
    /// Another accepted row of the same bits, and devices where it is forced.
    pub sibling: Option<(&'static str, &'a Group)>,
}

/// The data of a case and what the first launch made of it.
pub struct Base {
    /// Operand bytes.
    pub data: Data,
    /// What was seen on each rank.
    pub seen: Vec<Seen>,
}
