//! Property 6: views with offsets and strides give the bits of dense operands.

use crate::conformance::{
    bench::How,
    outputs,
    stage::Arrangement,
    subject::{Base, Subject},
};
use tandem_hal::{Error, Result};

/// Rows apart, first elements aligned to nothing or to sixteen bytes. A device may refuse with an
/// error that names the operand.
///
/// # Errors
/// What planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let gap = if case.seed.is_multiple_of(2) { 8 } else { 1 };
    let how = How { arrangement: Arrangement { gap, ..Arrangement::default() }, ..How::default() };
    let seen = match s.bench.run(&case.extents, &base.data, &how) {
        Err(Error::BadOperand { .. }) => return Ok(None),
        other => other?,
    };
    let why = "views apart differ from dense ones";
    let differs = outputs::same(facts, &case.extents, &seen, &base.seen, why);
    Ok(differs.or_else(|| outputs::trespass(&seen)))
}
