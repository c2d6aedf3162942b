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

/// What a wave does for 32 columns of experts' FP4 more, for 32 outputs of 32 pairs: its vector instructions at four clocks,
/// and the clocks of its matrix unit.
fn expert_clocks(kernel: &Kernel) -> [u64; 2] {
    let pairs = 32u64;
    let group = [0, pairs].into_iter().chain(0..pairs);
    let lists: Vec<u8> = group.flat_map(u64::to_le_bytes).collect();
    let run = |hidden: u64| {
        let x = vec![0x38; (pairs * hidden) as usize];
        let weight = vec![0x22; (pairs / 2 * hidden / 2) as usize];
        let scales = vec![127; (pairs * hidden / 32) as usize];
        // One expert, to which all go, with gates and ups of half the outputs each.
        let experts = [1, 0, 1, 1, hidden, pairs / 2].map(Argument::U64);
        let views = [
            Argument::View(&x, &scales, hidden),
            Argument::View(&weight, &scales, hidden),
            Argument::View(&weight, &scales, hidden),
            Argument::View(&lists, &[], 0),
            Argument::OutView((2 * pairs * pairs) as usize, pairs),
        ];
        kernel.run([1, 1], &[&views[..], &experts].concat(), &Schedule::eager()).1
    };
    let [few, many] = [1024, 1536].map(run);
    assert_eq!(many.lds_passes, many.lds_ideal_passes, "{}: bank conflicts", kernel.name);
    let vector = |c: &Counters| c.count("v_") - c.count("v_mfma");
    [4 * (vector(&many) - vector(&few)), many.matrix_cycles - few.matrix_cycles].map(|x| x / 16)
}

/// The figures of `kernels-rocm/TUNED.md`.
#[test]
fn experts_by_a_table_take_fewer_clocks_than_by_bf16() {
    let clocks = |name, target| {
        let kernel = ours("moe.expert_tiles", name, target, 256)?;
        Some(expert_clocks(&kernel))
    };
    let Some(table) = clocks("moe_gate_up__matrix", "gfx942") else { return };
    let bf16 = clocks("moe_gate_up__bf16", "gfx942").expect("a kernel");
    let mixed = clocks("moe_gate_up__matrix", "gfx950").expect("a kernel");
    assert!(table[0] < bf16[0] && table[1] < bf16[1]);
    assert_eq!((table, bf16, mixed), ([382, 64], [510, 128], [47, 32]));
}

/// What a wave does for a tile of 32 keys and each of so many rows of data: its vector instructions at four clocks, and the
/// clocks of its matrix unit.
fn score_clocks(kernel: &Kernel, rows: u64) -> [u64; 2] {
    let (heads, dim, page) = (32u64, 128u64, 32u64);
    let run = |entries: u64| {
        let (columns, pages) = (heads * dim, entries / page);
        let ones = vec![0x22; (rows * columns / 2) as usize];
        let scales = vec![127; (rows * columns / 32) as usize];
        let weights = 0x3F80u16.to_le_bytes().repeat((rows * heads) as usize);
        let key = [[0x22; 64].as_slice(), &[127; 4]].concat();
        let keys = key.repeat(entries as usize);
        let numbers = |x: u64| (x as i32).to_le_bytes();
        let table: Vec<u8> = (0..pages).flat_map(numbers).collect();
        let (sequence, visible) =
            (numbers(0).repeat(rows as usize), numbers(entries).repeat(rows as usize));
        let views = [
            Argument::View(&ones, &scales, columns),
            Argument::View(&weights, &[], heads),
            Argument::View(&keys, &[], page),
            Argument::View(&sequence, &[], 1),
            Argument::View(&table, &[], pages),
            Argument::View(&visible, &[], 1),
            Argument::OutView((4 * rows * entries) as usize, entries),
        ];
        // Scaled records of MXFP4, in blocks of 32.
        let form = [0, 1, 32, dim as u32, page as u32].map(Argument::U32);
        let sizes = [key.len() as u64, entries, 1, pages, heads, dim].map(Argument::U64);
        let rest = [entries, rows, 1].map(Argument::U64);
        let arguments = [&views[..], &form, &sizes, &[Argument::F32(1.0)], &rest].concat();
        let found = kernel.same_under_all([1, 1], &arguments);
        let expected = ((heads * dim) as f32).to_le_bytes().repeat((rows * entries) as usize);
        assert!(found == expected, "{}: other scores", kernel.name);
        kernel.run([1, 1], &arguments, &Schedule::eager()).1
    };
    let [few, many] = [1024, 2048].map(run);
    assert_eq!(many.lds_passes, many.lds_ideal_passes, "{}: bank conflicts", kernel.name);
    let vector = |c: &Counters| c.count("v_") - c.count("v_mfma");
    [4 * (vector(&many) - vector(&few)), many.matrix_cycles - few.matrix_cycles]
        .map(|x| x / (32 * rows))
}

/// The figures of `kernels-rocm/TUNED.md`.
#[test]
fn scores_take_the_clocks_on_record() {
    for (target, figures) in
        [("gfx942", [[780, 256], [309, 256]]), ("gfx950", [[368, 64], [203, 64]])]
    {
        let clocks = |name, rows| {
            let kernel = ours("index.score_tiles", name, target, 256)?;
            Some(score_clocks(&kernel, rows))
        };
        let Some(one) = clocks("index_scores__matrix_1", 1) else { return };
        let four = clocks("index_scores__matrix_4", 4).expect("a kernel");
        assert_eq!([one, four], figures, "{target}");
    }
}

/// What a wave does for 32 heads of a row that lists so many entries of either cache: its vector instructions at four
/// clocks, and the clocks of its matrix unit.
fn sparse_clocks(kernel: &Kernel, counts: [u64; 2]) -> [u64; 2] {
    let (heads, dim, page) = (32u64, 512u64, 32u64);
    let numbers = |count: u64| (0..count as i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
    let ones = |count: u64| 0x3F80u16.to_le_bytes().repeat(count as usize);
    let [window_at, selected_at] = counts.map(numbers);
    // Every dim is 2: as a code of FP8, and as one of FP4, whose scale is a code of 1.
    let (q, sink) = (ones(heads * dim), f32::NEG_INFINITY.to_le_bytes().repeat(heads as usize));
    let records = [
        [[0x40; 512].as_slice(), &[127; 16]].concat(),
        [[0x44; 256].as_slice(), &[0x38; 32]].concat(),
    ];
    let caches = [0, 1].map(|i| records[i].repeat(counts[i] as usize));
    let views = [
        Argument::View(&q, &[], dim),
        Argument::View(&caches[0], &[], page),
        Argument::View(&window_at, &[], counts[0]),
        Argument::View(&caches[1], &[], page),
        Argument::View(&selected_at, &[], counts[1]),
        Argument::View(&sink, &[], heads),
        Argument::OutView((2 * heads * dim) as usize, dim),
        Argument::U64(0),
        Argument::U64(0),
        Argument::U64(0),
    ];
    let entry = |i: usize, rule: u32, block: u32| {
        let words = [0, rule, block, dim as u32, page as u32].map(Argument::U32);
        [&words[..], &[records[i].len() as u64, counts[i]].map(Argument::U64)].concat()
    };
    let sizes = [heads, dim, counts[0], counts[1]].map(Argument::U64);
    let rest = [Argument::F32(0.01), Argument::U64(1)];
    let arguments = [&views[..], &entry(0, 0, 32), &entry(1, 2, 16), &sizes, &rest].concat();
    let found = kernel.same_under_all([1, 1], &arguments);
    assert!(found == 0x4000u16.to_le_bytes().repeat((heads * dim) as usize), "{}", kernel.name);
    let done = kernel.run([1, 1], &arguments, &Schedule::eager()).1;
    assert_eq!(done.lds_passes, done.lds_ideal_passes, "{}: bank conflicts", kernel.name);
    [4 * (done.count("v_") - done.count("v_mfma")), done.matrix_cycles].map(|x| x / 4)
}

/// The figures of `kernels-rocm/TUNED.md`.
#[test]
fn sparse_attention_takes_the_clocks_on_record() {
    for (target, figures) in
        [("gfx942", [[19127, 4096], [78031, 20480]]), ("gfx950", [[14355, 2048], [62187, 10240]])]
    {
        let clocks = |name, counts| {
            let kernel = ours("attn.sparse_tiles", name, target, 256)?;
            Some(sparse_clocks(&kernel, counts))
        };
        let Some(few) = clocks("attn_sparse__matrix_128", [128, 0]) else { return };
        let many = clocks("attn_sparse__matrix_640", [128, 512]).expect("a kernel");
        assert_eq!([few, many], figures, "{target}");
    }
}
