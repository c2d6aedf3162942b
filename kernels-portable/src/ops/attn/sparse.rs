//! The plain row of [`SparseAttention`].

use crate::ops::{
    kv::{entry, known},
    prelude::*,
};
use tandem_hal::{DeviceInfo, Extents, Needs, SparseAttention};

/// Threads of a block that scores and of one that weighs, as the kernels' source has them.
const THREADS: [u32; 2] = [64, 256];
/// Dims of a slice of values, as there.
const SLICE: u64 = 32;
/// Scratch at most, but for one row of data; more rows go piece by piece.
const SCRATCH_BYTES: u64 = 64 << 20;

impl Portable for SparseAttention {
    const ROW: Option<PortableRow<Self>> = Some(scratched("attn/sparse", run, accepts, needs));
}

fn accepts(d: &SparseAttention, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    d.selected.iter().chain([&d.window]).try_for_each(known)
}

/// Bytes of a row's scores, an f32 for each head and entry.
fn row_bytes(d: &SparseAttention) -> u64 {
    4 * d.heads * (d.window_count + d.selected_count)
}

/// Rows whose scores are held at once.
fn piece(d: &SparseAttention, tokens: u64) -> u64 {
    (SCRATCH_BYTES / row_bytes(d)).max(1).min(tokens)
}

fn needs(d: &SparseAttention, limits: &Extents) -> Needs {
    Needs { workspace_bytes: piece(d, limits.at(Sym::Tokens)) * row_bytes(d) }
}

fn run(d: &SparseAttention, io: &Arguments<SparseAttention>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let (window, _) = entry(&d.window, on.extents)?;
    // Without one, its list has no entries.
    let (selected, _) = entry(d.selected.as_ref().unwrap_or(&d.window), on.extents)?;
    let lists = [io.window, io.window_at, io.selected, io.selected_at].map(View);
    let (scores, count) = (View(on.workspace), d.window_count + d.selected_count);
    let sizes = [d.heads, d.head_dim, d.window_count, d.selected_count].map(U64);
    let per_block = u64::from(THREADS[0]) / dot_lanes(d.head_dim);
    let step = piece(d, tokens).max(1);
    for first in (0..tokens).step_by(step as usize) {
        let rows = step.min(tokens - first);
        let (scale, piece) = ([F32(d.scale.value())], [U64(first), U64(rows)]);
        let caches = [window, selected, scores];
        let scoring = [&[View(io.q)], &lists[..], &caches, &sizes, &scale, &piece].concat();
        let blocks = (rows * count).div_ceil(per_block);
        on.rows("attn_sparse__portable_scores", blocks, THREADS[0], &scoring)?;
        let outputs = [io.sink, io.y, io.lse].map(View);
        let weighing = [&lists[..], &outputs, &caches, &sizes, &piece].concat();
        let blocks = rows * d.heads * d.head_dim.div_ceil(SLICE);
        on.rows("attn_sparse__portable_values", blocks, THREADS[1], &weighing)?;
    }
    Ok(())
}
