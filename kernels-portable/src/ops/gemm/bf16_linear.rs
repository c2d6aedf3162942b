//! The plain row of [`Bf16Linear`].

use super::tile;
use crate::ops::prelude::*;
use tandem_hal::Bf16Linear;

impl Portable for Bf16Linear {
    const ROW: Option<PortableRow<Self>> = Some(portable("gemm/bf16_linear", run, any));
}

fn run(d: &Bf16Linear, io: &Arguments<Bf16Linear>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [x, weight, bias, y] = [io.x, io.weight, io.bias, io.y].map(View);
    let arguments = [x, weight, bias, y, U64(d.n), U64(d.k), U64(tokens)];
    on.rows("gemm_bf16__portable", tile::blocks(1, d.n, d.k, tokens), tile::THREADS, &arguments)
}
