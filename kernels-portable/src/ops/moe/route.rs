//! The plain row of [`Route`].

use crate::ops::prelude::*;
use tandem_hal::Route;

impl Portable for Route {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/route", run, any));
}

/// Threads of a block at most, as the kernel's source has it.
const THREADS: u64 = 512;

fn run(d: &Route, io: &Arguments<Route>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [logits, bias, bias_picture] = [io.logits, io.bias, io.bias_picture].map(View);
    let [picture, expert, weight] = [io.picture, io.expert, io.weight].map(View);
    let (experts, top_k, scale) = (U64(d.experts), U64(d.top_k), F32(d.scale.value()));
    let arguments =
        [logits, bias, bias_picture, picture, expert, weight, experts, top_k, scale, U64(tokens)];
    let threads = d.experts.next_multiple_of(32).min(THREADS) as u32;
    on.rows("moe_route__portable", tokens, threads, &arguments)
}
