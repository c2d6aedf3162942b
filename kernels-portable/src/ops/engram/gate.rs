//! The plain row of [`EngramGate`].

use crate::ops::prelude::*;
use tandem_hal::EngramGate;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for EngramGate {
    const ROW: Option<PortableRow<Self>> = Some(portable("engram/gate", run, any));
}

fn run(d: &EngramGate, io: &Arguments<EngramGate>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [kv, q_weight, k_weight] = [io.kv, io.q_weight, io.k_weight].map(View);
    let [masked, streams] = [io.masked, io.streams].map(View);
    let (count, width, eps) = (U64(d.streams), U64(d.width), F32(d.eps.value()));
    let arguments = [kv, q_weight, k_weight, masked, streams, count, width, eps, U64(tokens)];
    on.rows("engram_gate__portable", tokens * d.streams, THREADS, &arguments)
}
