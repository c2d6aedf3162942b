//! Rows of [`SparseAttention`].

use crate::ops::prelude::*;
use tandem_hal::{Cache, Form, SparseAttention};
use tandem_portable::{Argument::F32, ops::kv::entry};

/// The bits of rows on the matrix units: the entries of a tile in one sum, tiles in order.
const TILES: &str = "matrix-tiles";

/// Threads of a block, its heads, entries of a tile, and tiles that kernels hold, as the source has them.
const THREADS: u32 = 256;
const SIDE: u64 = 32;
const FEW_TILES: u64 = 4;
const MOST_TILES: u64 = 20;
const MOST_DIMS: u64 = 512;
const MOST_HEADS: u64 = 1 << 16;

impl Rows for SparseAttention {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const MATRIX: Row<SparseAttention, Launch<SparseAttention>> = Row {
            accepts: |d, _| accepts(d),
            ..tuned("matrix", TILES, ALL, "attn/sparse_tiles", run)
        };
        const { &[portable::<Self>(), MATRIX] }
    }
}

/// Tiles of both lists.
fn tiles(d: &SparseAttention) -> u64 {
    d.window_count.div_ceil(SIDE).saturating_add(d.selected_count.div_ceil(SIDE))
}

fn accepts(d: &SparseAttention) -> std::result::Result<(), &'static str> {
    if tiles(d) > MOST_TILES {
        return Err("more entries than a block holds scores of");
    }
    if d.head_dim > MOST_DIMS || !d.head_dim.is_multiple_of(SIDE) {
        return Err("heads are not of multiples of 32 dims up to 512");
    }
    if d.heads > MOST_HEADS {
        return Err("more heads than a kernel counts");
    }
    d.selected.iter().chain([&d.window]).try_for_each(known)
}

/// Whether the kernel has the entries of a cache.
fn known(cache: &Cache) -> std::result::Result<(), &'static str> {
    match cache.record.form {
        Form::Mxfp8 | Form::Nvfp4 => Ok(()),
        _ => Err("entries are neither MXFP8 nor NVFP4"),
    }
}

fn run(d: &SparseAttention, io: &Arguments<SparseAttention>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let blocks = tokens.saturating_mul(d.heads.div_ceil(SIDE));
    if blocks > i32::MAX as u64 {
        return Err(refused::<SparseAttention>("more rows than a launch counts"));
    }
    let kernel = match tiles(d) {
        ..=FEW_TILES => "attn_sparse__matrix_128",
        _ => "attn_sparse__matrix_640",
    };
    let (window, _) = entry(&d.window, on.extents)?;
    // Without one, its list has no entries.
    let (selected, _) = entry(d.selected.as_ref().unwrap_or(&d.window), on.extents)?;
    let views = [io.q, io.window, io.window_at, io.selected, io.selected_at, io.sink, io.y, io.lse];
    let views = views.map(View);
    let sizes = [d.heads, d.head_dim, d.window_count, d.selected_count].map(U64);
    let rest = [F32(d.scale.value()), U64(tokens)];
    let arguments = [&views[..], &[window, selected], &sizes, &rest].concat();
    on.rows(kernel, blocks, THREADS, &arguments)
}
