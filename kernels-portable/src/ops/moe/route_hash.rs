//! The plain row of [`RouteHash`].

use crate::ops::prelude::*;
use tandem_hal::RouteHash;

impl Portable for RouteHash {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/route_hash", run, any));
}

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 32;

fn run(d: &RouteHash, io: &Arguments<RouteHash>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [logits, id, table] = [io.logits, io.id, io.table].map(View);
    let [expert, weight] = [io.expert, io.weight].map(View);
    let [vocab, experts, top_k] = [d.vocab, d.experts, d.top_k].map(U64);
    let scale = F32(d.scale.value());
    let arguments = [logits, id, table, expert, weight, vocab, experts, top_k, scale, U64(tokens)];
    on.rows("moe_route_hash__portable", tokens, THREADS, &arguments)
}
