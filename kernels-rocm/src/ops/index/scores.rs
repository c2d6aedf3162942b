//! Rows of [`Scores`].

use crate::ops::prelude::*;
use tandem_hal::{Form, Scores};
use tandem_portable::{Argument::F32, ops::kv::entry};

/// The bits of rows on the matrix units: a head's dot in one sum, the heads of each half by register.
const HEADS: &str = "matrix-heads";

/// Threads of a block, keys of a tile, heads, columns and rows that a wave holds, as the source has them.
const THREADS: u32 = 256;
const KEYS: u64 = 32;
const MOST_HEADS: u64 = 32;
const MOST_COLUMNS: u64 = 128;
const ROWS: u64 = 4;
/// Tiles of a block at least, which its first steps are worth; blocks of a board at most: four a unit.
const TILES: u64 = 32;
const BLOCKS: u64 = 4 * 304;

impl Rows for Scores {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const MATRIX: Row<Scores, Launch<Scores>> = Row {
            accepts: |d, _| accepts(d),
            ..tuned("matrix", HEADS, ALL, "index/score_tiles", run)
        };
        const { &[portable::<Self>(), MATRIX] }
    }
}

fn accepts(d: &Scores) -> std::result::Result<(), &'static str> {
    if d.keys.record.form != Form::Mxfp4 || d.head_dim > MOST_COLUMNS {
        return Err("keys are not MXFP4 of up to 128 columns");
    }
    if d.heads > MOST_HEADS {
        return Err("more heads than a tile has rows");
    }
    if d.keys.page_entries > 1 << 20 {
        return Err("pages of more than 2^20 entries");
    }
    Ok(())
}

/// Parts of the entries of each group of rows.
fn parts(groups: u64, entries: u64) -> u64 {
    let tiles = entries.div_ceil(KEYS);
    BLOCKS.div_ceil(groups).min(tiles.div_ceil(TILES)).max(1)
}

fn run(d: &Scores, io: &Arguments<Scores>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries));
    let sequences = on.at(Sym::Sequences);
    if tokens == 0 || entries == 0 {
        return Ok(());
    }
    if entries > i32::MAX as u64 {
        return Err(refused::<Scores>("more entries than a kernel counts"));
    }
    // How rows are taken together does not show in the results.
    let (kernel, rows) = if tokens <= sequences {
        ("index_scores__matrix_1", 1)
    } else {
        ("index_scores__matrix_4", ROWS)
    };
    let groups = tokens.div_ceil(rows);
    let parts = parts(groups, entries);
    let views = [io.q, io.weight, io.keys, io.sequence, io.table, io.visible, io.y].map(View);
    let (entry, _) = entry(&d.keys, on.extents)?;
    let sizes = [sequences, on.at(Sym::TablePages), d.heads, d.head_dim].map(U64);
    let rest = [F32(d.scale.value()), U64(entries), U64(tokens), U64(parts)];
    let arguments = [&views[..], &[entry], &sizes, &rest].concat();
    on.rows(kernel, groups * parts, THREADS, &arguments)
}
