//! How fast it is, told and not judged: build hosts differ.

use std::time::Instant;

use tandem_gfxsim::Schedule;

use crate::support::{Argument, doubles, input, object, output, run_once};

#[test]
fn lane_operations_a_second() {
    let Some(object) = object("arithmetic", "gfx942") else { return };
    let count = 200_000;
    let numbers = input(&doubles(1, count), f64::to_le_bytes);
    let number = Argument::Number(count as u32);
    let buffers =
        [numbers.clone(), numbers.clone(), numbers, output(8 * count), output(4 * count), number];
    for schedule in [Schedule::eager(), Schedule::lazy(3)] {
        let begin = Instant::now();
        let size = [count.div_ceil(256) as u32, 256];
        let (_, counters) =
            run_once(&object, "fused", size, &buffers, &schedule).expect("a right kernel");
        let seconds = begin.elapsed().as_secs_f64();
        let rate = counters.steps as f64 * 64.0 / seconds / 1e6;
        println!(
            "{:?}: {} instructions, {rate:.0} M lane operations a second",
            schedule.timing, counters.steps
        );
        assert!(counters.count("v_fma") > 0 && counters.steps > 1000);
    }
}
