//! The plain row of [`TopK`].

use crate::ops::prelude::*;
use tandem_hal::TopK;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for TopK {
    const ROW: Option<PortableRow<Self>> = Some(portable("index/top_k", run, any));
}

fn run(d: &TopK, io: &Arguments<TopK>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries));
    let [scores, visible, blocks, y] = [io.scores, io.visible, io.blocks, io.y].map(View);
    let (count, size) = d.blocks.as_ref().map_or((0, 1), |b| (b.count, b.size));
    let sizes = [U64(d.k), U64(count), U64(size), U64(entries), U64(tokens)];
    let [k, count, size, entries, rows] = sizes;
    let arguments = [scores, visible, blocks, y, k, count, size, entries, rows];
    on.rows("index_top_k__portable", tokens, THREADS, &arguments)
}
