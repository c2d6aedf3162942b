//! Rows of [`GroupedLinear`].

use super::{narrow::Narrow, tile};
use crate::ops::prelude::*;
use crate::rows::hopper;
use tandem_hal::GroupedLinear;

impl Rows for GroupedLinear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("gemm/grouped_linear", run, any), NARROW] }
    }
}

fn run(d: &GroupedLinear, io: &Arguments<GroupedLinear>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let arguments = [x, weight, y, U64(d.groups), U64(d.n), U64(d.k), U64(tokens)];
    on.rows(
        "gemm_grouped__portable",
        tile::blocks(d.groups, d.n, d.k, tokens),
        tile::THREADS,
        &arguments,
    )
}

/// Tokens on the narrow side of the matrix units, see the kernel.
const NARROW: Row<GroupedLinear, Launch<GroupedLinear>> =
    hopper("narrow", "bf16-blocks", "gemm/grouped_narrow_sm90", run_narrow, |d, _| {
        narrow(d).accepts()
    });

fn narrow(d: &GroupedLinear) -> Narrow {
    Narrow { groups: d.groups, n: d.n, k: d.k, bytes: 1 }
}

fn run_narrow(d: &GroupedLinear, io: &Arguments<GroupedLinear>, on: &Launcher<'_>) -> Result<()> {
    let views = [io.x, io.weight, io.y].map(View);
    narrow(d).run("gemm_grouped__narrow", io.weight, &views, on)
}
