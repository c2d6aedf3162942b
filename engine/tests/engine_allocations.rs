//! What scheduling costs, counted: in a binary of its own, since counting slows every allocation.

mod engine_support;
#[path = "engine_support/instantaneous.rs"]
mod instantaneous;

use instantaneous::decoding;

/// Whatever the machine and the build: a step in which no request takes a page allocates a few lists,
/// however many requests run.
#[test]
fn a_step_allocates_nothing_for_each_request() {
    let allocations = |running| {
        let mut engine = decoding(running, 130, |_| 130);
        // All prompts are computed in one step, so all take pages, and grow their lists, in the
        // same steps.
        let step = || allocation_counter::measure(|| drop(engine.step().unwrap())).count_total;
        std::iter::repeat_with(step).take(20).min().unwrap()
    };
    let (few, many) = (allocations(16), allocations(1024));
    assert_eq!(few, many);
    assert!((1..=6).contains(&many), "{many} allocations");
}
