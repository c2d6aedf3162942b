//! Rows of [`TopK`].

use crate::driver::Shape;
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, PORTABLE, TopK};

impl Rows for TopK {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        // A choice is exact, so all rows have the same bits.
        const CLUSTER: Row<TopK, Launch<TopK>> =
            hopper("cluster", PORTABLE, "index/top_k_sm90", run_cluster, accepts_cluster);
        const { &[portable::<Self>(), CLUSTER] }
    }
}

/// Threads of a block of a cluster, entries that one of its warps reads at a time, and of a group.
const CLUSTER_THREADS: u64 = 512;
const STRETCH: u64 = 512;
const GROUP: u64 = 16;
/// Shared memory of a block without its groups, as the kernel's source has it.
const ROOM_BYTES: u64 = 57_008;
/// Groups at most; with more, blocks choose from all their entries.
const MOST_GROUPS: u64 = 32_768;
/// Entries that a block may put up for choice.
const MOST_K: u64 = 1024;
/// Entries of a row that one block chooses from at once.
const SHORT: u64 = 8192;
/// Blocks that are wanted in a launch: two on each of an H200's 132 multiprocessors.
const BLOCKS: u64 = 264;

fn accepts_cluster(d: &TopK, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.blocks.is_some() {
        return Err("entries are chosen from whole rows");
    }
    if d.k > MOST_K { Err("a block lists fewer entries") } else { Ok(()) }
}

/// Blocks of a row: a stretch a warp at least, and no more than are there at a time.
fn blocks_of(tokens: u64, entries: u64) -> u64 {
    let mut blocks = 1;
    while blocks < 16
        && entries > SHORT
        && blocks * CLUSTER_THREADS * GROUP < entries
        && tokens * blocks * 2 <= BLOCKS
    {
        blocks *= 2;
    }
    blocks
}

fn run_cluster(d: &TopK, io: &Arguments<TopK>, on: &Launcher<'_>) -> Result<()> {
    // No row sees more.
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries).min(i32::MAX as u64));
    let blocks = blocks_of(tokens, entries);
    let warps = CLUSTER_THREADS / 32;
    // Rows begin anywhere in a unit of 16 bytes.
    let stretches = (entries + 3).div_ceil(STRETCH).div_ceil(blocks * warps);
    let groups = (stretches * warps * (STRETCH / GROUP)).min(MOST_GROUPS);
    let shape = Shape {
        grid: [(tokens * blocks) as u32, 1, 1],
        block: [CLUSTER_THREADS as u32, 1, 1],
        shared_bytes: (ROOM_BYTES + groups * 4) as u32,
        cluster: Some([blocks as u32, 1, 1]),
        // Blocks of the next launch that wait would take the places of this one's.
        programmatic: tokens * blocks <= BLOCKS / 2,
    };
    let [scores, visible, y] = [io.scores, io.visible, io.y].map(View);
    let [k, entries, blocks, groups] = [d.k, entries, blocks, groups].map(|v| U32(v as u32));
    on.launch("index_top_k__cluster", &shape, &[scores, visible, y, k, entries, blocks, groups])
}
