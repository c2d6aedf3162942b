//! The plain row of [`GatedSilu`].

use crate::ops::prelude::*;
use tandem_hal::GatedSilu;

impl Portable for GatedSilu {
    const ROW: Option<PortableRow<Self>> = Some(portable("vision/gated_silu", run, any));
}

fn run(d: &GatedSilu, io: &Arguments<GatedSilu>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, y]) = (on.at(Sym::Tokens), [io.x, io.y].map(View));
    let arguments = [x, y, U64(d.inter), U64(tokens)];
    on.items("vision_gated_silu__portable", tokens * d.inter, &arguments)
}
