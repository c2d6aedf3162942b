//! The plain row of [`Verify`].

use crate::ops::prelude::*;
use tandem_hal::{Rule, Verify};

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for Verify {
    const ROW: Option<PortableRow<Self>> = Some(portable("spec/verify", run, any));
}

fn run(d: &Verify, io: &Arguments<Verify>, on: &Launcher<'_>) -> Result<()> {
    let sequences = on.at(Sym::Sequences);
    let [p, q, draft, length] = [io.p, io.q, io.draft, io.length].map(View);
    let [uniform, draw, accepted, token] = [io.uniform, io.draw, io.accepted, io.token].map(View);
    let rule = match d.rule {
        Rule::Greedy => 0,
        Rule::Standard => 1,
        Rule::Block => 2,
        Rule::Synthetic => 3,
    };
    let arguments = [
        p,
        q,
        draft,
        length,
        uniform,
        draw,
        accepted,
        token,
        U32(rule),
        F32(d.rate.value()),
        U64(d.block),
        U64(d.vocab),
        U64(sequences),
    ];
    on.rows("spec_verify__portable", sequences, THREADS, &arguments)
}
