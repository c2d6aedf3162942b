//! The plain row of [`Penalise`].

use crate::ops::prelude::*;
use tandem_hal::Penalise;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;
/// Ids that a block has, likewise.
const RANGE: u64 = 4096;

impl Portable for Penalise {
    const ROW: Option<PortableRow<Self>> = Some(portable("sample/penalise", run, any));
}

fn run(d: &Penalise, io: &Arguments<Penalise>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [prompt, output, repetition] = [io.prompt, io.output, io.repetition].map(View);
    let [presence, frequency] = [io.presence, io.frequency].map(View);
    let [bias_id, bias, logits] = [io.bias_id, io.bias, io.logits].map(View);
    let arguments = [
        prompt,
        output,
        repetition,
        presence,
        frequency,
        bias_id,
        bias,
        logits,
        U64(d.vocab),
        U64(on.at(Sym::History)),
        U64(d.biases),
        U64(tokens),
    ];
    let blocks = tokens * d.vocab.div_ceil(RANGE);
    on.rows("sample_penalise__portable", blocks, THREADS, &arguments)
}
