//! Property 11: a fused operator against its own decomposition.

use crate::conformance::{
    bench::{Bench, How, Road},
    expect::expected,
    operator, outputs,
    subject::{Base, Subject},
};
use tandem_hal::{Result, STEPS};

/// By bytes when the row claims the decomposition's bits, by the card's tolerance otherwise.
///
/// # Errors
/// What the card, planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    if !operator::is_fused(&case.op) {
        return Ok(None);
    }
    let Bench { numerics, .. } = s.bench;
    let bench = Bench { case, facts, devices: s.steps, numerics };
    let steps = How { road: Road::Steps, ..How::default() };
    let seen = bench.run(&case.extents, &base.data, &steps)?;
    if let Some(what) = outputs::trespass(&seen) {
        return Ok(Some(what));
    }
    if s.bits.starts_with(STEPS) {
        let why = "differs from its decomposition";
        return Ok(outputs::same(facts, &case.extents, &base.seen, &seen, why));
    }
    let want = expected(&case.op, facts, &case.extents, &base.data)?;
    Ok(outputs::judged(&case.op, facts, &case.extents, s.accumulator, &seen, &want))
}
