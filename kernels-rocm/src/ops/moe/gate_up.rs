//! Rows of [`GateUp`].

use super::tiles;
use crate::ops::prelude::*;
use tandem_hal::GateUp;

impl Rows for GateUp {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>(), MATRIX, BF16] }
    }
}

/// On the matrix units, see the kernel.
const MATRIX: Row<GateUp, Launch<GateUp>> = Row {
    accepts: |d, _| tiles::accepts(&d.experts, width(d)),
    ..tiles::matrix(run, |d, at| tiles::needs(&d.experts, at))
};

/// The same by way of bf16.
const BF16: Row<GateUp, Launch<GateUp>> = Row {
    accepts: |d, _| tiles::accepts(&d.experts, width(d)),
    ..tiles::bf16(run_bf16, |d, at| tiles::needs(&d.experts, at))
};

/// Outputs of a slot.
fn width(d: &GateUp) -> u64 {
    2 * d.experts.inter
}

fn run(d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    launch("moe_gate_up__matrix", d, io, on)
}

fn run_bf16(d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    launch("moe_gate_up__bf16", d, io, on)
}

fn launch(kernel: &str, d: &GateUp, io: &Arguments<GateUp>, on: &Launcher<'_>) -> Result<()> {
    tiles::run(kernel, &d.experts, [io.x, io.expert, io.y], &[io.w1, io.w3], width(d), on)
}
