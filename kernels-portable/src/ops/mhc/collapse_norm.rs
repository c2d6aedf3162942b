//! The plain row of [`MhcCollapseNorm`].

use crate::ops::prelude::*;
use tandem_hal::MhcCollapseNorm;

/// Threads of a block at most, as the kernel's source has it.
const THREADS: u32 = 640;

impl Portable for MhcCollapseNorm {
    const ROW: Option<PortableRow<Self>> = Some(fused("mhc/collapse_norm", run, any));
}

fn run(d: &MhcCollapseNorm, io: &Arguments<MhcCollapseNorm>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [streams, pre, weight, y, y8] = [io.streams, io.pre, io.weight, io.y, io.y8].map(View);
    let sizes = [U64(d.streams), U64(d.width), F32(d.eps.value()), U64(tokens)];
    let [count, width, eps, rows] = sizes;
    let arguments = [streams, pre, weight, y, y8, count, width, eps, rows];
    let threads = row_threads(d.width).min(THREADS);
    on.rows("mhc_collapse_norm__portable", tokens, threads, &arguments)
}
