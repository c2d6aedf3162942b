//! The plain row of [`GateUp`].

use super::experts;
use crate::ops::prelude::*;
use tandem_hal::GateUp;

impl Portable for GateUp {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/gate_up", run, any));
}

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 128;
/// Outputs that a group of lanes makes.
const ROWS: u64 = 4;

fn run(d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let views = [io.x, io.expert, io.w1, io.w3, io.y].map(View);
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let each = u64::from(THREADS) / dot_lanes(d.experts.hidden) * ROWS;
    let tiles = (2 * d.experts.inter).div_ceil(each);
    on.rows("moe_gate_up__portable", tokens * d.experts.top_k * tiles, THREADS, &arguments)
}
