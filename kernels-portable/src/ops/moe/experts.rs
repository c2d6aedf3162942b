//! Arguments that operators over routed experts share.

use crate::{Argument, ops::prelude::*};
use tandem_hal::Experts;

/// Operands, then `Experts` of the device header number by number, then the rest.
pub fn arguments(
    views: &[Argument<'static>],
    d: &Experts,
    rest: &[Argument<'static>],
) -> Vec<Argument<'static>> {
    let numbers = [d.total, d.first, d.local, d.top_k, d.hidden, d.inter].map(U64);
    [views, &numbers, rest].concat()
}
