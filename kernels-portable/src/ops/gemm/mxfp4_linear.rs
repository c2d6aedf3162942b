//! The plain row of [`Mxfp4Linear`].

use super::tile;
use crate::ops::prelude::*;
use tandem_hal::Mxfp4Linear;

impl Portable for Mxfp4Linear {
    const ROW: Option<PortableRow<Self>> = Some(portable("gemm/mxfp4_linear", run, any));
}

fn run(d: &Mxfp4Linear, io: &Arguments<Mxfp4Linear>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let arguments = [x, weight, y, U64(d.n), U64(d.k), U64(tokens)];
    on.rows("gemm_mxfp4__portable", tile::blocks(1, d.n, d.k, tokens), tile::THREADS, &arguments)
}
