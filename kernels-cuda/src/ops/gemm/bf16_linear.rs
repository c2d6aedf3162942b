//! Rows of [`Bf16Linear`].

use crate::{driver::Shape, launcher::at_most, ops::prelude::*};
use tandem_hal::{Bf16Linear, DeviceInfo};

/// Rows and outputs of a block's tile, as the kernel's source has it.
const SIDE: u32 = 16;
/// Blocks along a grid's second axis at most; the kernel goes round.
const SECOND_AXIS: u64 = 65_535;

impl Rows for Bf16Linear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("gemm/bf16_linear", run, accepts)] }
    }
}

fn accepts(d: &Bf16Linear, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    // A grid's first axis holds 2^31 - 1 tiles.
    if d.n <= u64::from(SIDE) * 0x7FFF_FFFF {
        Ok(())
    } else {
        Err("more outputs than a grid holds")
    }
}

fn run(d: &Bf16Linear, io: &Arguments<Bf16Linear>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let side = u64::from(SIDE);
    let columns = at_most(d.n.div_ceil(side), 0x7FFF_FFFF);
    let rows = at_most(tokens.div_ceil(side), SECOND_AXIS);
    let shape = Shape { grid: [columns, rows, 1], block: [SIDE, SIDE, 1], ..Shape::flat(1, SIDE) };
    let arguments =
        [View(io.x), View(io.weight), View(io.bias), View(io.y), U64(d.n), U64(d.k), U64(tokens)];
    on.launch("gemm_bf16__portable", &shape, &arguments)
}
