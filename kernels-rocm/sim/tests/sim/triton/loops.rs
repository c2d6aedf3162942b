//! Main loops: what our tuned kernels do for the same tile and columns as Triton's, instruction by instruction.

use super::{Argument, Kernel, ours, triton};
use crate::support::TARGETS;
use tandem_gfxsim::{Counters, Schedule};

/// Rows, outputs and columns of the tile.
const SIDE: u64 = 128;
const DEPTH: u64 = 128;

/// What a kernel does for a tile of so many columns.
fn tile(kernel: &Kernel, is_ours: bool, k: u64) -> Counters {
    let rows = vec![0x38; (SIDE * k) as usize];
    let scales = vec![127; (SIDE * k / 32) as usize];
    let bytes = (2 * SIDE * SIDE) as usize;
    let theirs = [
        Argument::In(&rows),
        Argument::In(&scales),
        Argument::In(&rows),
        Argument::In(&scales),
        Argument::Out(bytes),
        Argument::U32(SIDE as u32),
        Argument::U32(k as u32),
    ];
    let own = [
        Argument::View(&rows, &scales, k),
        Argument::View(&rows, &scales, k),
        Argument::OutView(bytes, SIDE),
        Argument::U64(SIDE),
        Argument::U64(k),
        Argument::U64(SIDE),
    ];
    let (arguments, blocks) = if is_ours { (&own[..], 8) } else { (&theirs[..], 1) };
    kernel.run([blocks, 1], arguments, &Schedule::eager()).1
}

/// What all waves do for `DEPTH` columns more, of which there are many.
#[derive(Debug, PartialEq, Eq)]
struct Loop {
    instructions: u64,
    matrix: u64,
    vector: u64,
    /// Of memory and of LDS.
    memory: u64,
    matrix_clocks: u64,
    /// Passes of LDS, and as many as there would be without bank conflicts.
    lds: [u64; 2],
}

impl Loop {
    fn of(kernel: &Kernel, is_ours: bool) -> Loop {
        // Whole sections of ours either way.
        let [few, many] = [1024, 1024 + 4 * DEPTH].map(|k| tile(kernel, is_ours, k));
        let count = |what: &dyn Fn(&Counters) -> u64| (what(&many) - what(&few)) / 4;
        let named = |prefix: &'static str| count(&|c: &Counters| c.count(prefix));
        let matrix = named("v_mfma");
        Loop {
            instructions: count(&|c| c.steps),
            matrix,
            vector: named("v_") - matrix,
            memory: named("ds_") + named("global_") + named("buffer_"),
            matrix_clocks: count(&|c| c.matrix_cycles),
            lds: [count(&|c| c.lds_passes), count(&|c| c.lds_ideal_passes)],
        }
    }
}

/// The figures of `kernels-rocm/TUNED.md`.
fn on_record(target: &str) -> [Loop; 2] {
    let counted = |[instructions, matrix, vector, memory, matrix_clocks]: [u64; 5], lds| Loop {
        instructions,
        matrix,
        vector,
        memory,
        matrix_clocks,
        lds,
    };
    match target {
        "gfx942" => [
            counted([9428, 256, 8768, 280, 8192], [1360, 848]),
            counted([3348, 128, 2276, 192, 4096], [768, 768]),
        ],
        _ => [
            counted([456, 32, 104, 160, 2048], [320, 320]),
            counted([612, 32, 228, 128, 2048], [256, 256]),
        ],
    }
}

#[test]
fn main_loops_are_as_recorded_beside_tritons() {
    for target in TARGETS {
        let Some(theirs) = triton("mxfp8", target) else { return };
        let Some(own) = ours("gemm.mxfp8_tiles", "gemm_mxfp8__wide", target, 256) else { return };
        let own = Loop::of(&own, true);
        assert_eq!(own.lds[0], own.lds[1], "{target}: bank conflicts");
        assert_eq!([Loop::of(&theirs, false), own], on_record(target), "{target}");
    }
}
