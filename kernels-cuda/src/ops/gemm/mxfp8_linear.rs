//! Rows of [`Mxfp8Linear`].

use super::{narrow::Narrow, wide::Wide};
use crate::ops::prelude::*;
use tandem_hal::Mxfp8Linear;

/// The bits of rows that expand codes for the 16-bit matrix units of Hopper.
const SECTIONS: &str = "f16-sections";

impl Rows for Mxfp8Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>(), NARROW, WIDE] }
    }
}

/// Tokens up to which the narrow row is faster than the wide one.
const MOST_NARROW: u64 = 128;

/// Tokens on the narrow side of the matrix units, see the kernel.
const NARROW: Row<Mxfp8Linear, Launch<Mxfp8Linear>> = Row {
    tokens: 0..=MOST_NARROW,
    ..hopper("narrow", SECTIONS, "gemm/mxfp8_narrow_sm90", run_narrow, |d, _| narrow(d).accepts())
};

fn narrow(d: &Mxfp8Linear) -> Narrow {
    Narrow { groups: 1, n: d.n, k: d.k, bytes: 1 }
}

fn run_narrow(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let views = [io.x, io.weight, io.y].map(View);
    narrow(d).run("gemm_mxfp8__narrow", io.weight, &views, on)
}

/// What is left of the tokens, though it takes any, see the kernel.
const WIDE: Row<Mxfp8Linear, Launch<Mxfp8Linear>> = Row {
    needs: |d, at| wide(d).needs(at.at(Sym::Tokens)),
    ..hopper("wide", SECTIONS, "gemm/mxfp8_wide_sm90", run_wide, |d, _| narrow(d).accepts())
};

fn wide(d: &Mxfp8Linear) -> Wide {
    Wide { n: d.n, k: d.k, parts: narrow(d).parts() }
}

fn run_wide(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    wide(d).run([io.x, io.weight, io.y], on)
}
