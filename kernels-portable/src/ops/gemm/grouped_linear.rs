//! The plain row of [`GroupedLinear`].

use super::tile;
use crate::ops::prelude::*;
use tandem_hal::GroupedLinear;

impl Portable for GroupedLinear {
    const ROW: Option<PortableRow<Self>> = Some(portable("gemm/grouped_linear", run, any));
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
