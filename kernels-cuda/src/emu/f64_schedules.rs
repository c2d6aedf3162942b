//! The f64 units of `gemm.f32` under many schedules, whole and with one of their waits left out at a time. Tokens of
//! more steps than two stages hold, so that stages come round.

use super::host::{OnHost, leaving_out, sites};
use crate::{
    driver::{Argument, Shape, ViewArgument},
    launcher::Target,
};
use tandem_hal::Result;

/// Launches of a kernel: each has another schedule.
const SCHEDULES: usize = 10;
/// Launches within which a wait that is left out has to matter.
const PATIENCE: usize = 40;
/// Outputs of more than one fragment, the last of them less than whole; columns of ten steps, likewise; and tokens.
const OUTPUTS: u64 = 27;
const COLUMNS: u64 = 312;
const TOKENS: u64 = 19;
const PARTS: u64 = 2;
/// Rows of two warps.
const TILE: u64 = 32;

/// A kernel: its tokens at a time, blocks that share a tile, and steps of a stage.
struct Kernel {
    name: &'static str,
    tokens: u64,
    blocks: u64,
    held: u64,
}

const KERNELS: [Kernel; 6] = [
    Kernel { name: "gemm_f32__f64_8", tokens: 8, blocks: PARTS, held: 5 },
    Kernel { name: "gemm_f32__f64_16", tokens: 16, blocks: PARTS, held: 5 },
    Kernel { name: "gemm_f32__f64_32", tokens: 32, blocks: PARTS, held: 1 },
    Kernel { name: "gemm_f32__f64_parts_16", tokens: 16, blocks: 1, held: 4 },
    Kernel { name: "gemm_f32__f64_parts_32", tokens: 32, blocks: 1, held: 2 },
    Kernel { name: "gemm_f32__f64_any", tokens: 8, blocks: 1, held: 3 },
];

/// Numbers of -1 to 1 as bf16, at a multiple of 16 bytes: the vector and where they begin.
fn numbers(count: u64, seed: u64) -> (Vec<u16>, usize) {
    let mut state = seed;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 40) as f32 / 8_388_608.0 - 1.0;
        (number.to_bits() >> 16) as u16
    };
    let data: Vec<u16> = (0..count + 8).map(next).collect();
    let first = data.as_ptr().align_offset(16);
    (data, first)
}

struct Case {
    x: (Vec<u16>, usize),
    weight: (Vec<u16>, usize),
}

impl Case {
    fn new() -> Case {
        Case { x: numbers(TOKENS * COLUMNS, 1), weight: numbers(OUTPUTS * COLUMNS, 2) }
    }

    /// Sums of products in f64, one part after the other, as bits of the results.
    fn expected(&self) -> Vec<u32> {
        let row = |(data, first): &(Vec<u16>, usize), i: u64| -> Vec<f64> {
            let codes = &data[first + (i * COLUMNS) as usize..][..COLUMNS as usize];
            codes.iter().map(|code| f64::from(f32::from_bits(u32::from(*code) << 16))).collect()
        };
        let result = |i: u64| {
            let (x, w) = (row(&self.x, i / OUTPUTS), row(&self.weight, i % OUTPUTS));
            x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() as f32
        };
        (0..TOKENS * OUTPUTS).map(|i| result(i).to_bits()).collect()
    }

    /// The results of one launch.
    fn run(&self, kernel: &Kernel) -> Result<Vec<u32>> {
        let mut y = vec![f32::NAN; (TOKENS * OUTPUTS) as usize];
        let at = |(data, first): &(Vec<u16>, usize)| data[*first..].as_ptr().expose_provenance();
        let view = |codes: usize, stride| {
            Argument::View(ViewArgument { codes: codes as u64, stride, ..Default::default() })
        };
        let arguments = [
            view(at(&self.x), COLUMNS),
            view(at(&self.weight), COLUMNS),
            view(y.as_mut_ptr().expose_provenance(), OUTPUTS),
            Argument::U64(OUTPUTS),
            Argument::U64(COLUMNS),
            Argument::U64(TOKENS),
            Argument::U32(PARTS as u32),
            Argument::U32(kernel.held as u32),
        ];
        let tiles = OUTPUTS.div_ceil(TILE) * TOKENS.div_ceil(kernel.tokens) * kernel.blocks;
        let bytes = (2 * kernel.held * 32 + TILE) * kernel.tokens * 8;
        let shape = Shape {
            shared_bytes: bytes as u32,
            cluster: Some([kernel.blocks as u32, 1, 1]),
            ..Shape::flat(tiles as u32, 64)
        };
        OnHost.launch(kernel.name, &shape, &arguments)?;
        Ok(y.into_iter().map(f32::to_bits).collect())
    }
}

#[test]
fn the_f64_units_need_each_of_their_waits() {
    let case = Case::new();
    let expected = case.expected();
    for kernel in &KERNELS {
        for _ in 0..SCHEDULES {
            assert_eq!(case.run(kernel).unwrap(), expected, "{}", kernel.name);
        }
    }
    let all = sites("f32_f64_sm90.cu");
    assert!(all.len() >= 4, "{all:?}");
    let is_caught = || {
        let mut launches = KERNELS.iter().cycle().take(PATIENCE);
        launches.any(|kernel| case.run(kernel).map_or(true, |made| made != expected))
    };
    let missed: Vec<&String> = all.iter().filter(|site| !leaving_out(site, is_caught)).collect();
    assert!(missed.is_empty(), "left out without a difference: {missed:?}");
}
