//! The plain row of [`Down`].

use super::experts;
use crate::ops::prelude::*;
use tandem_hal::{Down, Experts};

impl Portable for Down {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/down", run, any));
}

/// Threads of a block, as the device header has it.
pub(super) const THREADS: u32 = 128;

/// Blocks that make the outputs of a slot.
pub(super) fn tiles(d: &Experts) -> u64 {
    d.hidden.div_ceil(u64::from(THREADS) / dot_lanes(d.inter))
}

fn run(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, views) = (on.at(Sym::Tokens), [io.x, io.expert, io.w2, io.y].map(View));
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let blocks = tokens * d.experts.top_k * tiles(&d.experts);
    on.rows("moe_down__portable", blocks, THREADS, &arguments)
}
