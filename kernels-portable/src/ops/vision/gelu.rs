//! The plain row of [`Gelu`].

use crate::ops::prelude::*;
use tandem_hal::Gelu;

impl Portable for Gelu {
    const ROW: Option<PortableRow<Self>> = Some(portable("vision/gelu", run, any));
}

fn run(d: &Gelu, io: &Arguments<Gelu>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, y]) = (on.at(Sym::Tokens), [io.x, io.y].map(View));
    let arguments = [x, y, U64(d.width), U64(tokens)];
    on.items("vision_gelu__portable", tokens * d.width, &arguments)
}
