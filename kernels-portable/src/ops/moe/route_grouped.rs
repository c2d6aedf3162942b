//! The plain row of [`RouteGrouped`].

use crate::ops::prelude::*;
use tandem_hal::RouteGrouped;

impl Portable for RouteGrouped {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/route_grouped", run, any));
}

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 32;

fn run(d: &RouteGrouped, io: &Arguments<RouteGrouped>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [logits, bias, expert, weight] = [io.logits, io.bias, io.expert, io.weight].map(View);
    let [experts, groups, groups_taken, top_k] =
        [d.experts, d.groups, d.groups_taken, d.top_k].map(U64);
    let scale = F32(d.scale.value());
    let arguments =
        [logits, bias, expert, weight, experts, groups, groups_taken, top_k, scale, U64(tokens)];
    on.rows("moe_route_grouped__portable", tokens, THREADS, &arguments)
}
