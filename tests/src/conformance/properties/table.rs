//! Property 9: the table of rows is honest.

use crate::conformance::{operator, subject::Group};
use std::collections::BTreeSet;
use tandem_hal::{Candidate, Error, Op, Provider, Result, Want};

/// Rejections have reasons, rows have one name each, a plan succeeds exactly when a row is accepted,
/// and the table of a device that is not opened says the same.
///
/// # Errors
/// What planning returns besides a refusal.
pub fn check(
    op: &Op,
    want: &Want,
    free: &Group,
    provider: &dyn Provider,
) -> Result<Option<String>> {
    let list = free[0].candidates(op, want);
    let mut names = BTreeSet::new();
    for Candidate { kernel, verdict, .. } in &list {
        if !names.insert(*kernel) {
            return Ok(Some(format!("two rows are named {kernel}")));
        }
        if verdict.as_ref().is_err_and(|reason| reason.trim().is_empty()) {
            return Ok(Some(format!("row {kernel} is refused without a reason")));
        }
    }
    let accepted = list.iter().any(|c| c.verdict.is_ok());
    match operator::plan(op, &*free[0], want) {
        Ok(_) if !accepted && !operator::is_fused(op) => {
            return Ok(Some("a plan was made of no accepted row".into()));
        }
        Err(Error::Unsupported { reason, .. }) if accepted => {
            return Ok(Some(format!("a row is accepted, yet there is no plan: {reason}")));
        }
        Err(Error::Unsupported { .. }) | Ok(_) => {}
        Err(other) => return Err(other),
    }
    let Ok(pretended) = provider.pretend(&free[0].info().board) else { return Ok(None) };
    let twin = tandem_hal::Device::candidates(&pretended, op, want);
    let verdicts = |list: &[Candidate]| -> Vec<_> {
        list.iter().map(|c| (c.kernel, c.bits, c.verdict.clone())).collect()
    };
    Ok((verdicts(&twin) != verdicts(&list))
        .then(|| "the table without a device gives other verdicts than the device".into()))
}
