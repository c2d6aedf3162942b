//! The plain row of [`MhcMixes`].

use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, MhcMixes};

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 512;
/// Streams at most: their coefficients lie in shared memory.
const STREAMS: u64 = 16;

impl Portable for MhcMixes {
    const ROW: Option<PortableRow<Self>> = Some(portable("mhc/mixes", run, accepts));
}

fn accepts(d: &MhcMixes, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.streams <= STREAMS { Ok(()) } else { Err("more than 16 streams") }
}

fn run(d: &MhcMixes, io: &Arguments<MhcMixes>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [streams, projection, base, scale] =
        [io.streams, io.projection, io.base, io.scale].map(View);
    let arguments = [
        streams,
        projection,
        base,
        scale,
        View(io.pre),
        View(io.post),
        View(io.comb),
        U64(d.streams),
        U64(d.width),
        U64(d.iterations),
        F32(d.eps.value()),
        F32(d.norm_eps.value()),
        U64(tokens),
    ];
    on.rows("mhc_mixes__portable", tokens, THREADS, &arguments)
}
