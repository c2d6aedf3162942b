//! The plain row of [`ExpertUp`].

use super::experts;
use crate::ops::prelude::*;
use tandem_hal::ExpertUp;

impl Portable for ExpertUp {
    const ROW: Option<PortableRow<Self>> = Some(fused("moe/expert_up", run, any));
}

/// Units of a block, as the kernel's source has it.
const UNITS: u64 = 32;
/// Its threads.
const THREADS: u32 = 512;

fn run(d: &ExpertUp, io: &Arguments<ExpertUp>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let views = [io.x, io.expert, io.weight, io.w1, io.w3, io.y].map(View);
    let rest = [F32(d.limit.value()), U64(tokens)];
    let arguments = experts::arguments(&views, &d.experts, &rest);
    let tiles = d.experts.inter / UNITS;
    on.rows("moe_expert_up__portable", tokens * d.experts.top_k * tiles, THREADS, &arguments)
}
