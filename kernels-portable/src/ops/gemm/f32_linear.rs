//! The plain row of [`F32Linear`].

use super::tile;
use crate::ops::prelude::*;
use tandem_hal::{Elem, F32Linear};

impl Portable for F32Linear {
    const ROW: Option<PortableRow<Self>> = Some(portable("gemm/f32_linear", run, any));
}

fn run(d: &F32Linear, io: &Arguments<F32Linear>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let kernel = match (d.x == Elem::F32, d.weight == Elem::F32) {
        (false, false) => "gemm_f32__portable_bf16_bf16",
        (false, true) => "gemm_f32__portable_bf16_f32",
        (true, false) => "gemm_f32__portable_f32_bf16",
        (true, true) => "gemm_f32__portable_f32_f32",
    };
    let arguments = [x, weight, y, U64(d.n), U64(d.k), U64(tokens)];
    on.rows(kernel, tile::blocks(1, d.n, d.k, tokens), tile::THREADS, &arguments)
}
