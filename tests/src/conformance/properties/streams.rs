//! Property 10: two streams at once give the same bits.

use crate::conformance::{
    bench::How,
    outputs,
    subject::{Base, Subject},
};
use tandem_hal::{Error, Result};

/// Two threads, each with a stream and memory of its own, on one device. Collectives are left out:
/// every rank must launch them in one order.
///
/// # Errors
/// What planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let ([device], [data]) = (s.bench.devices, &base.data[..]) else { return Ok(None) };
    let one = || {
        let (plan, stage) = s.bench.stage(device, &case.extents, data, &How::default())?;
        // Outputs that are updated in place bear one launch only.
        plan.launch(&*stage.stream, &stage.workspace, &stage.views)?;
        stage.stream.sync()?;
        stage.seen()
    };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(one);
        (one(), other.join().unwrap_or(Err(Error::ForeignObject { what: "thread" })))
    });
    let seen = [first?, second?];
    let want = [base.seen[0].clone(), base.seen[0].clone()];
    let why = "two streams at once differ from one";
    let differs = outputs::same(facts, &case.extents, &seen, &want, why);
    Ok(differs.or_else(|| outputs::trespass(&seen)))
}
