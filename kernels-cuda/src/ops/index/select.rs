//! Rows of [`Select`].

use super::scores::accepts_tiles;
use crate::driver::Shape;
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, Select};
use tandem_portable::ops::kv::entry;

impl Rows for Select {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const LISTED: Row<Select, Launch<Select>> = hopper(
            "listed",
            "steps index.scores=fp4-tiles",
            "index/select_sm90",
            run_listed,
            accepts_listed,
        );
        const { &[LISTED] }
    }
}

/// Threads of a block, entries of listed blocks that it scores, and shared memory of a block without the list, as the
/// kernel's source has them.
const THREADS: u32 = 512;
const OWN: u64 = 2048;
const ROOM_BYTES: u64 = 81_920;
/// Blocks of a cluster at most.
const MOST_BLOCKS: u64 = 16;
/// Entries that a block may put up for choice.
const MOST_K: u64 = 1024;
/// Up to so many rows of data have as many blocks as a cluster may.
const FEW_TOKENS: u64 = 8;

fn accepts_listed(d: &Select, on: &DeviceInfo) -> std::result::Result<(), &'static str> {
    accepts_tiles(&d.scores, on)?;
    let Some(listed) = &d.top_k.blocks else { return Err("entries are not of listed blocks") };
    if d.publish.is_some() {
        return Err("blocks are not published");
    }
    if d.top_k.k > MOST_K {
        return Err("a block lists fewer entries");
    }
    if listed.count.div_ceil(MOST_BLOCKS).saturating_mul(listed.size) > OWN {
        return Err("more entries in listed blocks than a cluster scores");
    }
    Ok(())
}

/// Blocks of a cluster: as few as have room for all listed entries, more for few rows of data.
fn blocks_of(tokens: u64, count: u64, size: u64) -> u64 {
    let mut blocks = 1;
    // Each takes whole listed blocks.
    while blocks < MOST_BLOCKS
        && (count.div_ceil(blocks) * size > OWN
            || (tokens <= FEW_TOKENS && blocks * 256 < count * size))
    {
        blocks *= 2;
    }
    blocks
}

fn run_listed(d: &Select, io: &Arguments<Select>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries).min(i32::MAX as u64));
    let Some(listed) = &d.top_k.blocks else {
        return Err(refused::<Select>("entries are not of listed blocks"));
    };
    let blocks = blocks_of(tokens, listed.count, listed.size);
    let shape = Shape {
        grid: [(tokens * blocks) as u32, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: (ROOM_BYTES + listed.count * 4) as u32,
        cluster: Some([blocks as u32, 1, 1]),
        programmatic: true,
    };
    let (entry, _) = entry(&d.scores.keys, on.extents)?;
    let views = [io.q, io.weight, io.keys, io.sequence, io.table, io.visible, io.blocks, io.y];
    let [q, weight, keys, sequence, table, visible, list, y] = views.map(View);
    let sizes = [d.top_k.k, listed.count, listed.size, entries, blocks].map(|v| U32(v as u32));
    let [k, count, size, entries, blocks] = sizes;
    let arguments = [
        q,
        weight,
        keys,
        sequence,
        table,
        visible,
        list,
        y,
        entry,
        U64(on.at(Sym::Sequences)),
        U64(on.at(Sym::TablePages)),
        U32(d.scores.heads as u32),
        F32(d.scores.scale.value()),
        k,
        count,
        size,
        entries,
        blocks,
    ];
    on.launch("index_select__listed", &shape, &arguments)
}
