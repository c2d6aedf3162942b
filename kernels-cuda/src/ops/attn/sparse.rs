//! Rows of [`SparseAttention`].

use crate::ops::{
    kv::{entry, known},
    prelude::*,
};
use tandem_hal::{DeviceInfo, SparseAttention};

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Rows for SparseAttention {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("attn/sparse", run, accepts)] }
    }
}

fn accepts(d: &SparseAttention, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    d.selected.iter().chain([&d.window]).try_for_each(known)
}

fn run(d: &SparseAttention, io: &Arguments<SparseAttention>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let (window, _) = entry(&d.window, on)?;
    // Without one, its list has no entries.
    let (selected, _) = entry(d.selected.as_ref().unwrap_or(&d.window), on)?;
    let [q, cache, at] = [io.q, io.window, io.window_at].map(View);
    let arguments = [
        q,
        cache,
        at,
        View(io.selected),
        View(io.selected_at),
        View(io.sink),
        View(io.y),
        View(io.lse),
        window,
        selected,
        U64(d.heads),
        U64(d.head_dim),
        U64(d.window_count),
        U64(d.selected_count),
        F32(d.scale.value()),
        U64(tokens),
    ];
    on.rows("attn_sparse__portable", tokens * d.heads, THREADS, &arguments)
}
