//! Rows of [`GroupedLinear`].

use super::narrow::Narrow;
use crate::ops::prelude::*;
use tandem_hal::GroupedLinear;

impl Rows for GroupedLinear {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>(), NARROW] }
    }
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
