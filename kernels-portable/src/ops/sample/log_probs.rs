//! The plain row of [`LogProbs`].

use crate::ops::prelude::*;
use tandem_hal::LogProbs;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for LogProbs {
    const ROW: Option<PortableRow<Self>> = Some(portable("sample/log_probs", run, any));
}

fn run(d: &LogProbs, io: &Arguments<LogProbs>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [logits, token, chosen] = [io.logits, io.token, io.chosen].map(View);
    let [top_id, top] = [io.top_id, io.top].map(View);
    let arguments = [logits, token, chosen, top_id, top, U64(d.vocab), U64(d.top), U64(tokens)];
    on.rows("sample_log_probs__portable", tokens, THREADS, &arguments)
}
