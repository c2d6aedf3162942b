//! The plain row of [`Confidence`].

use crate::ops::prelude::*;
use tandem_hal::Confidence;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for Confidence {
    const ROW: Option<PortableRow<Self>> = Some(portable("spec/confidence", run, any));
}

fn run(d: &Confidence, io: &Arguments<Confidence>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [hidden, previous, embed] = [io.hidden, io.previous, io.embed].map(View);
    let sizes = [U64(d.width), U64(d.vocab), U64(d.rank), U64(tokens)];
    let [width, vocab, rank, rows] = sizes;
    let [weight, y] = [io.weight, io.y].map(View);
    let arguments = [hidden, previous, embed, weight, y, width, vocab, rank, rows];
    on.rows("spec_confidence__portable", tokens, THREADS, &arguments)
}
