//! The plain row of [`Mxfp8Linear`].

use super::tile;
use crate::ops::prelude::*;
use tandem_hal::Mxfp8Linear;

impl Portable for Mxfp8Linear {
    const ROW: Option<PortableRow<Self>> = Some(portable("gemm/mxfp8_linear", run, any));
}

fn run(d: &Mxfp8Linear, io: &Arguments<Mxfp8Linear>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let arguments = [x, weight, y, U64(d.n), U64(d.k), U64(tokens)];
    on.rows("gemm_mxfp8__portable", tile::blocks(1, d.n, d.k, tokens), tile::THREADS, &arguments)
}
