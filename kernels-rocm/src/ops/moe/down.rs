//! Rows of [`Down`].

use super::tiles;
use crate::ops::prelude::*;
use tandem_hal::Down;

impl Rows for Down {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>(), MATRIX, BF16] }
    }
}

/// On the matrix units, see the kernel.
const MATRIX: Row<Down, Launch<Down>> = Row {
    accepts: |d, _| tiles::accepts(&d.experts, d.experts.hidden),
    ..tiles::matrix(run, |d, at| tiles::needs(&d.experts, at))
};

/// The same by way of bf16.
const BF16: Row<Down, Launch<Down>> = Row {
    accepts: |d, _| tiles::accepts(&d.experts, d.experts.hidden),
    ..tiles::bf16(run_bf16, |d, at| tiles::needs(&d.experts, at))
};

fn run(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    launch("moe_down__matrix", d, io, on)
}

fn run_bf16(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    launch("moe_down__bf16", d, io, on)
}

fn launch(kernel: &str, d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    tiles::run(kernel, &d.experts, [io.x, io.expert, io.y], &[io.w2], d.experts.hidden, on)
}
