//! Device time of a launch among launches like it.

use crate::{Budget, Subject};
use serde::Serialize;
use tandem_hal::{Operator, Result, Stream};

/// Milliseconds of a graph beyond which it has fewer launches: long ones fill every cache
/// themselves.
const GRAPH_MS: f64 = 40.0;
/// A median wants at least as many replays.
const FEWEST_REPLAYS: u64 = 3;

/// Microseconds of one launch, over the replays of a graph of many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The median.
    pub us: f64,
    /// A tenth of the replays was at most as fast.
    pub p10_us: f64,
    /// A tenth of the replays was at least as slow.
    pub p90_us: f64,
    /// Launches of the graph.
    pub launches: u64,
    /// Replays that were timed.
    pub replays: u64,
}

impl Timing {
    /// Captures `launches` launches, or fewer where they take long, and replays them.
    ///
    /// # Errors
    /// What the device meets.
    pub fn of<D: Operator>(subject: &Subject<D>, launches: u64, budget: &Budget) -> Result<Timing> {
        // The first launch loads code; the second tells how long one takes.
        subject.time(1)?;
        let one_ms = subject.time(1)?.as_secs_f64() * 1e3;
        let fit = (GRAPH_MS.min(budget.case_ms) / one_ms.max(1e-6)) as u64;
        let launches = launches.min(fit.max(2));
        let graph = subject.capture(launches)?;
        let stream = subject.stream();
        let fit = (budget.case_ms / (one_ms * launches as f64).max(1e-6)) as u64;
        let replays = budget.replays.min(fit.max(FEWEST_REPLAYS));
        let warm = if replays == budget.replays { 2 } else { 1 };
        (0..warm).try_for_each(|_| stream.replay(&*graph))?;
        let mut times = Vec::with_capacity(replays as usize);
        for _ in 0..replays {
            times.push(replay_us(stream, &*graph)? / launches as f64);
        }
        Ok(Timing::over(times, launches))
    }

    fn over(mut times: Vec<f64>, launches: u64) -> Timing {
        times.sort_by(f64::total_cmp);
        let (count, tenth) = (times.len(), times.len() / 10);
        Timing {
            us: times[count / 2],
            p10_us: times[tenth],
            p90_us: times[count - 1 - tenth],
            launches,
            replays: count as u64,
        }
    }
}

fn replay_us(stream: &dyn Stream, graph: &dyn tandem_hal::Graph) -> Result<f64> {
    let start = stream.mark()?;
    stream.replay(graph)?;
    let end = stream.mark()?;
    stream.sync()?;
    Ok(end.since(&*start)?.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_both_tenths_are_taken() {
        let times = (1..=20).rev().map(f64::from).collect();
        let timing = Timing::over(times, 7);
        assert_eq!((timing.us, timing.p10_us, timing.p90_us), (11.0, 3.0, 18.0));
        assert_eq!((timing.launches, timing.replays), (7, 20));
    }
}
