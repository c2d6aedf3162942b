//! Property 7: indices and counts out of range are masked as the page says.

use crate::conformance::{bench::How, expect::expected, outputs, subject::Subject};
use tandem_hal::{Domain, Result};
use tandem_reference::Fill;

/// The case again with strays among its indices and counts.
///
/// # Errors
/// What the card, planning or the device returns.
pub fn check(s: &Subject<'_>) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let may_stray = facts.operands.iter().any(|(_, _, spec)| {
        !spec.absent && matches!(spec.domain, Domain::Index { .. } | Domain::Count(_))
    });
    if !may_stray {
        return Ok(None);
    }
    let data = case.data(facts, Fill { strays: true, ..Fill::of_seed(case.seed) });
    let want = expected(&case.op, facts, &case.extents, &data)?;
    let seen = s.bench.run(&case.extents, &data, &How::default())?;
    let wrong = outputs::judged(&case.op, facts, &case.extents, s.accumulator, &seen, &want);
    Ok(wrong.or_else(|| outputs::trespass(&seen)))
}
