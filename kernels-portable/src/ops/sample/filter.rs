//! The plain row of [`Filter`].

use crate::ops::prelude::*;
use tandem_hal::Filter;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for Filter {
    const ROW: Option<PortableRow<Self>> = Some(portable("sample/filter", run, any));
}

fn run(d: &Filter, io: &Arguments<Filter>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [logits, temperature, top_k] = [io.logits, io.temperature, io.top_k].map(View);
    let [top_p, min_p, p] = [io.top_p, io.min_p, io.p].map(View);
    let arguments = [logits, temperature, top_k, top_p, min_p, p, U64(d.vocab), U64(tokens)];
    on.rows("sample_filter__portable", tokens, THREADS, &arguments)
}
