//! The plain row of [`Candidates`].

use crate::ops::prelude::*;
use tandem_hal::Candidates;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for Candidates {
    const ROW: Option<PortableRow<Self>> = Some(portable("index/candidates", run, any));
}

fn run(d: &Candidates, io: &Arguments<Candidates>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries));
    let [scores, visible, y] = [io.scores, io.visible, io.y].map(View);
    let sizes = [U64(d.blocks.count), U64(d.blocks.size), U64(entries), U64(tokens)];
    let [count, size, entries, rows] = sizes;
    let arguments = [scores, visible, y, count, size, entries, rows];
    on.rows("index_candidates__portable", tokens, THREADS, &arguments)
}
