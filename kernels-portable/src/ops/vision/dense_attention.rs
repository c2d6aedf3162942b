//! The plain row of [`DenseAttention`].

use crate::ops::prelude::*;
use tandem_hal::DenseAttention;

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 128;

impl Portable for DenseAttention {
    const ROW: Option<PortableRow<Self>> = Some(portable("vision/dense_attention", run, any));
}

fn run(d: &DenseAttention, io: &Arguments<DenseAttention>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, keys) = (on.at(Sym::Tokens), on.at(Sym::Keys));
    let [q, k, v, y] = [io.q, io.k, io.v, io.y].map(View);
    let scale = F32(d.scale.value());
    let arguments = [q, k, v, y, U64(d.heads), U64(d.head_dim), scale, U64(keys), U64(tokens)];
    on.rows("vision_attention__portable", tokens * d.heads, THREADS, &arguments)
}
