//! The plain row of [`Scores`].

use crate::ops::{
    kv::{entry, known},
    prelude::*,
};
use tandem_hal::{DeviceInfo, Scores};

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for Scores {
    const ROW: Option<PortableRow<Self>> = Some(portable("index/scores", run, accepts));
}

fn accepts(d: &Scores, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    known(&d.keys)
}

fn run(d: &Scores, io: &Arguments<Scores>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(Sym::Entries));
    let [q, weight, keys] = [io.q, io.weight, io.keys].map(View);
    let (entry, _) = entry(&d.keys, on.extents)?;
    let arguments = [
        q,
        weight,
        keys,
        View(io.sequence),
        View(io.table),
        View(io.visible),
        View(io.y),
        entry,
        U64(on.at(Sym::Sequences)),
        U64(on.at(Sym::TablePages)),
        U64(d.heads),
        U64(d.head_dim),
        F32(d.scale.value()),
        U64(entries),
        U64(tokens),
    ];
    let blocks = (tokens * entries).div_ceil(u64::from(THREADS) / dot_lanes(d.head_dim));
    on.rows("index_scores__portable", blocks, THREADS, &arguments)
}
