//! Property 5: a graph gives the bits of eager launches, with the data of the moment.

use crate::conformance::{
    bench::How,
    outputs,
    subject::{Base, Subject},
};
use tandem_hal::Result;
use tandem_reference::Fill;

/// Capture once, replay with the case's data and then with other data in the same memory: other
/// lists, lengths and positions.
///
/// # Errors
/// What planning or the device returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let other = case.data(facts, Fill::of_seed(case.seed.wrapping_add(7)));
    let pairs = s.bench.each_rank(|rank, device| {
        let (plan, mut stage) =
            s.bench.stage(device, &case.extents, &base.data[rank], &How::default())?;
        let graph = {
            let stage = &stage;
            let mut body = || plan.launch(&*stage.stream, &stage.workspace, &stage.views);
            stage.stream.capture(&mut body)?
        };
        // A captured launch must not have run.
        let untouched = stage.seen()?;
        stage.stream.replay(&*graph)?;
        stage.stream.sync()?;
        let first = stage.seen()?;
        stage.load(&other[rank], How::default().fill.byte())?;
        stage.stream.replay(&*graph)?;
        stage.stream.sync()?;
        Ok((untouched, first, stage.seen()?))
    })?;
    if let Some(what) = pairs.iter().find_map(|(untouched, ..)| untouched.trespass.clone()) {
        return Ok(Some(format!("capture ran something: {what}")));
    }
    let first: Vec<_> = pairs.iter().map(|(_, first, _)| first.clone()).collect();
    let second: Vec<_> = pairs.into_iter().map(|(_, _, second)| second).collect();
    let eager = s.bench.run(&case.extents, &other, &How::default())?;
    let differs = |got, want, why| outputs::same(facts, &case.extents, got, want, why);
    Ok(differs(&first, &base.seen, "a replayed graph differs from the eager launch")
        .or_else(|| differs(&second, &eager, "a graph replayed on changed data differs"))
        .or_else(|| outputs::trespass(&second)))
}
