//! The plain row of [`MergeAttention`].

use crate::ops::prelude::*;
use tandem_hal::MergeAttention;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 128;

impl Portable for MergeAttention {
    const ROW: Option<PortableRow<Self>> = Some(portable("attn/merge", run, any));
}

fn run(d: &MergeAttention, io: &Arguments<MergeAttention>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [a, lse_a, b, lse_b] = [io.a, io.lse_a, io.b, io.lse_b].map(View);
    let [sink, y, lse] = [io.sink, io.y, io.lse].map(View);
    let sizes = [U64(d.heads), U64(d.head_dim), U64(tokens)];
    let [heads, head_dim, rows] = sizes;
    let arguments = [a, lse_a, b, lse_b, sink, y, lse, heads, head_dim, rows];
    on.rows("attn_merge__portable", tokens * d.heads, THREADS, &arguments)
}
