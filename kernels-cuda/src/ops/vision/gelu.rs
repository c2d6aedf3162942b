//! Rows of [`Gelu`].

use crate::ops::prelude::*;
use tandem_hal::Gelu;

impl Rows for Gelu {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("vision/gelu", run, any)] }
    }
}

fn run(d: &Gelu, io: &Arguments<Gelu>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, y]) = (on.at(Sym::Tokens), [io.x, io.y].map(View));
    let arguments = [x, y, U64(d.width), U64(tokens)];
    on.items("vision_gelu__portable", tokens * d.width, &arguments)
}
