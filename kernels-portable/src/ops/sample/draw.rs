//! The plain row of [`Draw`].

use crate::ops::prelude::*;
use tandem_hal::Draw;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for Draw {
    const ROW: Option<PortableRow<Self>> = Some(portable("sample/draw", run, any));
}

fn run(d: &Draw, io: &Arguments<Draw>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [p, uniform, token]) =
        (on.at(Sym::Tokens), [io.p, io.uniform, io.token].map(View));
    let arguments = [p, uniform, token, U64(d.vocab), U64(tokens)];
    on.rows("sample_draw__portable", tokens, THREADS, &arguments)
}
