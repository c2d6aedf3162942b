//! Rows of [`Scores`].

use crate::driver::Shape;
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, Form, Scores};
use tandem_portable::ops::kv::entry;

impl Rows for Scores {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const TILES: Row<Scores, Launch<Scores>> =
            hopper("tiles", "fp4-tiles", "index/scores_sm90", run_tiles, accepts_tiles);
        const { &[portable::<Self>(), TILES] }
    }
}

/// Threads of a block of gangs and of warps that move keys, keys of a tile, bytes of a slot of the ring, of a tile of
/// queries, of what scores a row and of the notes on tiles, as the kernel's source has them.
const TILE_THREADS: u32 = 640;
const TILE_KEYS: u64 = 64;
const SLOT_BYTES: u64 = TILE_KEYS * 68 + 32;
const QUERY_BYTES: u64 = 32 * 128;
const ROW_BYTES: u64 = 144;
const LATER_BYTES: u64 = 1028;
/// Up to so many rows of data, the rows of a sequence are looked for one by one.
const FEW_TOKENS: u64 = 512;
/// Multiprocessors of an H200: a block each.
const BLOCKS: u64 = 132;

/// What the kernels for MXFP4 keys take.
pub(super) fn accepts_tiles(d: &Scores, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.keys.record.form != Form::Mxfp4 || d.head_dim != 128 {
        return Err("keys are not MXFP4 of 128 columns");
    }
    if d.heads > 32 {
        return Err("more heads than a tile has columns");
    }
    if !d.keys.page_entries.is_multiple_of(4) || d.keys.page_entries > 1 << 20 {
        return Err("pages do not hold multiples of 16 bytes");
    }
    Ok(())
}

/// Parts of the entries of each group of rows: so that every multiprocessor has about the same.
fn parts_of(groups: u64, entries: u64) -> u64 {
    let tiles = entries.div_ceil(TILE_KEYS);
    // The time of all parts, in tiles; a few more for the beginning of each.
    let time = |parts: u64| (groups * parts).div_ceil(BLOCKS) * (tiles.div_ceil(parts) + 12);
    (1..=tiles.clamp(1, BLOCKS)).min_by_key(|parts| time(*parts)).unwrap_or(1)
}

fn run_tiles(d: &Scores, io: &Arguments<Scores>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries));
    let sequences = on.at(Sym::Sequences);
    if tokens == 0 || entries == 0 {
        return Ok(());
    }
    if entries > i32::MAX as u64 || tokens > i32::MAX as u64 / BLOCKS {
        return Err(refused::<Scores>("more scores than a launch counts"));
    }
    // How rows are taken together does not show in the results. Tiles of queries and of the ring are the kernel's.
    let (rows, kernel, queries, slots) = match tokens.div_ceil(sequences.max(1)) {
        0..=1 => (1, "index_scores__tiles_1", 3, 24),
        2 => (2, "index_scores__tiles_2", 4, 12),
        3..=4 => (4, "index_scores__tiles_4", 8, 12),
        _ => (6, "index_scores__tiles_6", 12, 12),
    };
    let parts = parts_of(tokens.div_ceil(rows), entries);
    let shape = Shape {
        grid: [(tokens * parts) as u32, 1, 1],
        block: [TILE_THREADS, 1, 1],
        shared_bytes: (queries * QUERY_BYTES + slots * SLOT_BYTES + rows * ROW_BYTES + LATER_BYTES)
            as u32,
        cluster: None,
        programmatic: true,
    };
    let aligned = io.keys.codes.is_multiple_of(16) && io.keys.stride.is_multiple_of(4);
    let (entry, _) = entry(&d.keys, on.extents)?;
    let views = [io.q, io.weight, io.keys, io.sequence, io.table, io.visible, io.y].map(View);
    let [q, weight, keys, sequence, table, visible, y] = views;
    let flags = [tokens <= FEW_TOKENS, aligned].map(|flag| U32(flag.into()));
    let [anywhere, aligned] = flags;
    let arguments = [
        q,
        weight,
        keys,
        sequence,
        table,
        visible,
        y,
        entry,
        U64(sequences),
        U64(on.at(Sym::TablePages)),
        U32(d.heads as u32),
        F32(d.scale.value()),
        U32(entries as u32),
        U32(tokens as u32),
        U32(parts as u32),
        anywhere,
        aligned,
    ];
    on.launch(kernel, &shape, &arguments)
}
