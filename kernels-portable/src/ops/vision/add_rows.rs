//! The plain row of [`AddRows`].

use crate::ops::prelude::*;
use tandem_hal::AddRows;

impl Portable for AddRows {
    const ROW: Option<PortableRow<Self>> = Some(portable("vision/add_rows", run, any));
}

fn run(d: &AddRows, io: &Arguments<AddRows>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [y, x]) = (on.at(Sym::Tokens), [io.y, io.x].map(View));
    let arguments = [y, x, U64(d.width), U64(tokens)];
    on.items("vision_add__portable", tokens * d.width, &arguments)
}
