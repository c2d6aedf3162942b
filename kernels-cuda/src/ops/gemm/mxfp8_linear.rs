//! Rows of [`Mxfp8Linear`].

use super::narrow::Narrow;
use crate::ops::prelude::*;
use tandem_hal::Mxfp8Linear;

/// The bits of rows that expand codes for the 16-bit matrix units of Hopper.
const BLOCKS: &str = "f16-blocks";

impl Rows for Mxfp8Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>(), NARROW] }
    }
}

/// Tokens on the narrow side of the matrix units, see the kernel.
const NARROW: Row<Mxfp8Linear, Launch<Mxfp8Linear>> =
    hopper("narrow", BLOCKS, "gemm/mxfp8_narrow_sm90", run_narrow, |d, _| narrow(d).accepts());

fn narrow(d: &Mxfp8Linear) -> Narrow {
    Narrow { groups: 1, n: d.n, k: d.k, bytes: 1 }
}

fn run_narrow(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let views = [io.x, io.weight, io.y].map(View);
    narrow(d).run("gemm_mxfp8__narrow", io.weight, &views, on)
}
