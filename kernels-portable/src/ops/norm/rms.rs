//! The plain row of [`RmsNorm`].

use crate::ops::prelude::*;
use tandem_hal::RmsNorm;

impl Portable for RmsNorm {
    const ROW: Option<PortableRow<Self>> = Some(portable("norm/rms", run, any));
}

fn run(d: &RmsNorm, io: &Arguments<RmsNorm>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let arguments = [x, weight, y, U64(d.width), F32(d.eps.value()), U64(tokens)];
    on.rows("norm_rms__portable", tokens, row_threads(d.width), &arguments)
}
