//! Rows of [`F32Linear`].

use crate::driver::{Argument, Shape, ViewArgument};
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, Elem, F32Linear};

impl Rows for F32Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const UNITS: Row<F32Linear, Launch<F32Linear>> = Row {
            suits: |d| d.n.saturating_mul(d.k) >= SUITED_WEIGHTS,
            ..hopper("f64_units", "f64-parts", "gemm/f32_f64_sm90", run, accepts)
        };
        const { &[portable::<Self>(), UNITS] }
    }
}

/// Smaller weights were not timed.
const SUITED_WEIGHTS: u64 = 1 << 20;
/// Outputs and tokens of a fragment, and columns of a step.
const ROWS: u64 = 16;
const EIGHT: u64 = 8;
const STEP: u64 = 32;
/// Columns that a lane takes at once, and bytes that it takes of rows that lie at multiples of them.
const CHUNK: u64 = 8;
const CHUNK_BYTES: u64 = 16;
/// Warps of a block, and where a cluster has few tokens.
const WARPS: u64 = 8;
const FEW_WARPS: u64 = 4;
/// Parts of the columns at most, the blocks of a cluster; steps that each has at least; and blocks up to which there are
/// more parts, so that all of an H200's 132 multiprocessors have some.
const MOST_PARTS: u64 = 16;
const LEAST_STEPS: u64 = 4;
const ENOUGH: u64 = 192;
/// Tokens up to which clusters take sixteen at a time.
const FEW_TOKENS: u64 = 64;
/// Tiles from which on blocks make all parts themselves: two for each multiprocessor.
const MANY_TILES: u64 = 256;

fn accepts(d: &F32Linear, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    let is_bf16 = d.x == Elem::Bf16 && d.weight == Elem::Bf16;
    if is_bf16 { Ok(()) } else { Err("operands are not both stored as bf16") }
}

/// Parts of a sum. From the shape alone: the bits follow from it.
fn parts(n: u64, k: u64) -> u64 {
    let (tiles, steps) = (n.div_ceil(FEW_WARPS * ROWS), k.div_ceil(STEP));
    let mut parts = 1;
    while parts < MOST_PARTS && tiles * parts < ENOUGH && steps >= 2 * parts * LEAST_STEPS {
        parts *= 2;
    }
    parts
}

/// How a launch is done: a kernel with eights of tokens and warps of a block, steps of tokens that are held, and whether
/// the blocks of a cluster share the parts of a tile or each block makes all of them.
#[derive(Clone, Copy)]
struct Kernel {
    name: &'static str,
    eights: u64,
    warps: u64,
    held: u64,
    shares: bool,
}

impl Kernel {
    const fn shared(name: &'static str, eights: u64, warps: u64, held: u64) -> Kernel {
        Kernel { name, eights, warps, held, shares: true }
    }

    const fn whole(name: &'static str, eights: u64, held: u64) -> Kernel {
        Kernel { name, eights, warps: WARPS, held, shares: false }
    }

    fn tiles(&self, n: u64, tokens: u64) -> u64 {
        n.div_ceil(self.warps * ROWS) * tokens.div_ceil(self.eights * EIGHT)
    }

    /// Two stages of tokens, and a block's sums: behind them or, where blocks share, in their place.
    fn shared_bytes(&self) -> u64 {
        let stages = 2 * self.held * STEP * self.eights * EIGHT * 8;
        let sums = self.warps * ROWS * self.eights * EIGHT * 8;
        if self.shares { stages.max(sums) } else { stages + sums }
    }
}

/// The fastest on an H200.
fn fastest(n: u64, tokens: u64, parts: u64) -> Kernel {
    const SIXTEEN: Kernel = Kernel::whole("gemm_f32__f64_parts_16", 2, 8);
    const MANY: Kernel = Kernel::whole("gemm_f32__f64_parts_32", 4, 4);
    match parts {
        1 if tokens <= EIGHT => Kernel::shared("gemm_f32__f64_8", 1, WARPS, 15),
        1 if tokens <= 2 * EIGHT => Kernel::shared("gemm_f32__f64_16", 2, WARPS, 10),
        1 => Kernel::shared("gemm_f32__f64_32", 4, WARPS, 5),
        _ if tokens <= EIGHT => Kernel::shared("gemm_f32__f64_8", 1, FEW_WARPS, 10),
        _ if tokens <= FEW_TOKENS => Kernel::shared("gemm_f32__f64_16", 2, FEW_WARPS, 5),
        _ if MANY.tiles(n, tokens) >= MANY_TILES => MANY,
        _ if SIXTEEN.tiles(n, tokens) >= MANY_TILES => SIXTEEN,
        _ => Kernel::shared("gemm_f32__f64_32", 4, WARPS, 5),
    }
}

/// Whether lanes' columns of all rows lie at multiples of their size.
fn is_aligned(operand: &ViewArgument, k: u64) -> bool {
    k.is_multiple_of(CHUNK) && (operand.codes | (operand.stride * 2)).is_multiple_of(CHUNK_BYTES)
}

fn run(d: &F32Linear, io: &Arguments<F32Linear>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, parts) = (on.at(Sym::Tokens), parts(d.n, d.k));
    let kernel = if is_aligned(&io.x, d.k) && is_aligned(&io.weight, d.k) {
        fastest(d.n, tokens, parts)
    } else {
        Kernel::whole("gemm_f32__f64_any", 1, 8)
    };
    let cluster = if kernel.shares { parts } else { 1 };
    let blocks = kernel.tiles(d.n, tokens) * cluster;
    let blocks = i32::try_from(blocks)
        .map_err(|_| refused::<F32Linear>("more tiles than a launch has blocks"))?;
    let shape = Shape {
        grid: [blocks.unsigned_abs(), 1, 1],
        block: [(kernel.warps * 32) as u32, 1, 1],
        shared_bytes: kernel.shared_bytes() as u32,
        cluster: (cluster > 1).then_some([cluster as u32, 1, 1]),
        programmatic: true,
    };
    let [x, weight, y] = [io.x, io.weight, io.y].map(View);
    let arguments: [Argument<'_>; 8] =
        [x, weight, y, U64(d.n), U64(d.k), U64(tokens), U32(parts as u32), U32(kernel.held as u32)];
    on.launch(kernel.name, &shape, &arguments)
}
