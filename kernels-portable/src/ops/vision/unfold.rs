//! The plain row of [`Unfold`].

use crate::ops::prelude::*;
use tandem_hal::Unfold;

impl Portable for Unfold {
    const ROW: Option<PortableRow<Self>> = Some(portable("vision/unfold", run, any));
}

fn run(d: &Unfold, io: &Arguments<Unfold>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, cells) = (on.at(Sym::Tokens), on.at(Sym::Cells));
    let ([x, at, y], patches) = ([io.x, io.at, io.y].map(View), d.side * d.side);
    let arguments = [x, at, y, U64(d.width), U64(patches), U64(tokens), U64(cells)];
    on.items("vision_unfold__portable", cells * d.width * patches, &arguments)
}
