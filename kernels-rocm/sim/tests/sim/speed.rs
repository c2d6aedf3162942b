//! How fast it is, told and not judged: build hosts differ.

use std::sync::Arc;
use std::time::Instant;

use tandem_gfxsim::{Access, CodeObject, Counters, Dispatch, Memory, Schedule, launch};

use crate::support::{Argument, can_load, doubles, input, object, output, run_once, shipped};

/// Tells the rate.
fn tell(what: &str, schedule: &Schedule, counters: &Counters, begin: Instant) {
    let (seconds, Schedule { timing, threads, .. }) = (begin.elapsed().as_secs_f64(), schedule);
    let rate = counters.steps as f64 * 64.0 / seconds / 1e6;
    let steps = counters.steps;
    println!(
        "{what}, {timing:?}, {threads} threads: {steps} instructions, {rate:.0} M lane operations a second"
    );
}

fn schedules() -> impl Iterator<Item = Schedule> {
    let both = [Schedule::eager(), Schedule::lazy(3)];
    both.into_iter().flat_map(|schedule| [1, 2].map(|threads| Schedule { threads, ..schedule }))
}

#[test]
fn lane_operations_a_second() {
    let Some(object) = object("arithmetic", "gfx942") else { return };
    let count = 200_000;
    let numbers = input(&doubles(1, count), f64::to_le_bytes);
    let number = Argument::Number(count as u32);
    let buffers =
        [numbers.clone(), numbers.clone(), numbers, output(8 * count), output(4 * count), number];
    for schedule in schedules() {
        let begin = Instant::now();
        let size = [count.div_ceil(256) as u32, 256];
        let (_, counters) =
            run_once(&object, "fused", size, &buffers, &schedule).expect("a right kernel");
        tell("fused", &schedule, &counters, begin);
        assert!(counters.count("v_fma") > 0 && counters.steps > 1000);
    }
}

/// A linear of 8 tokens, 512 outputs and 1024 columns.
#[test]
fn lane_operations_a_second_of_a_linear_that_ships() {
    if !can_load() {
        return;
    }
    let (tokens, n, k) = (8u64, 512u64, 1024u64);
    let object = CodeObject::load(&shipped("gemm.bf16_linear", "gfx942")).expect("the object");
    let mut memory = Memory::new();
    let module = memory.load(&Arc::new(object));
    let ones = |count: u64| [0x80, 0x3f].repeat(count as usize);
    let x = memory.allocate("x", &ones(tokens * k), Access::ReadOnly);
    let weight = memory.allocate("weight", &ones(n * k), Access::ReadOnly);
    let y = memory.allocate("y", &ones(tokens * n), Access::ReadWrite);
    let words = [x, 0, k, weight, 0, k, 0, 0, 0, y, 0, n, n, k, tokens];
    let arguments: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    for schedule in schedules() {
        let dispatch = Dispatch {
            module: &module,
            kernel: "gemm_bf16__portable",
            grid: [64, 1, 1],
            block: [128, 1, 1],
            arguments: &arguments,
            dynamic_lds_bytes: 0,
        };
        let begin = Instant::now();
        let counters = launch(&memory, &dispatch, &schedule).expect("a right kernel");
        tell("gemm.bf16", &schedule, &counters, begin);
        // 1024 as bf16.
        assert_eq!(
            memory.read(y, tokens * n * 2),
            Some([0x80, 0x44].repeat((tokens * n) as usize))
        );
    }
}
