//! Rows of [`Bf16Linear`].

use super::{narrow::Narrow, tile};
use crate::ops::prelude::*;
use crate::rows::hopper;
use tandem_hal::{Bf16Linear, DeviceInfo};

impl Rows for Bf16Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("gemm/bf16_linear", run, any), NARROW] }
    }
}

fn run(d: &Bf16Linear, io: &Arguments<Bf16Linear>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [x, weight, bias, y] = [io.x, io.weight, io.bias, io.y].map(View);
    let arguments = [x, weight, bias, y, U64(d.n), U64(d.k), U64(tokens)];
    on.rows("gemm_bf16__portable", tile::blocks(1, d.n, d.k, tokens), tile::THREADS, &arguments)
}

/// Tokens on the narrow side of the matrix units, see the kernel.
const NARROW: Row<Bf16Linear, Launch<Bf16Linear>> =
    hopper("narrow", "bf16-blocks", "gemm/bf16_narrow_sm90", run_narrow, accepts_narrow);

/// Elements that are copied together.
const PIECE: u64 = 8;

fn narrow(d: &Bf16Linear) -> Narrow {
    Narrow { groups: 1, n: d.n, k: d.k, bytes: 2 }
}

fn accepts_narrow(d: &Bf16Linear, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if !d.k.is_multiple_of(PIECE) {
        return Err("rows are not of whole pieces of 16 bytes");
    }
    narrow(d).accepts()
}

fn run_narrow(d: &Bf16Linear, io: &Arguments<Bf16Linear>, on: &Launcher<'_>) -> Result<()> {
    let views = [io.x, io.bias, io.y].map(View);
    narrow(d).run("gemm_bf16__narrow", io.weight, &views, on)
}
