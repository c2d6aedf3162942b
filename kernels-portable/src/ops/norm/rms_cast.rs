//! The plain row of [`RmsNormCast`].

use crate::ops::prelude::*;
use tandem_hal::RmsNormCast;

impl Portable for RmsNormCast {
    const ROW: Option<PortableRow<Self>> = Some(fused("norm/rms_cast", run, any));
}

fn run(d: &RmsNormCast, io: &Arguments<RmsNormCast>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let arguments = [x, weight, y, U64(d.width), F32(d.eps.value()), U64(tokens)];
    on.rows("norm_rms_cast__portable", tokens, row_threads(d.width), &arguments)
}
