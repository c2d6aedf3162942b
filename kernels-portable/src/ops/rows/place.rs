//! The plain row of [`PlaceRows`].

use crate::ops::prelude::*;
use tandem_hal::PlaceRows;

impl Portable for PlaceRows {
    const ROW: Option<PortableRow<Self>> = Some(portable("rows/place", run, any));
}

fn run(d: &PlaceRows, io: &Arguments<PlaceRows>, on: &Launcher<'_>) -> Result<()> {
    let (cells, tokens) = (on.at(Sym::Cells), on.at(Sym::Tokens));
    let [rows, at, x] = [io.rows, io.at, io.x].map(View);
    let arguments = [rows, at, x, U64(d.width), U64(cells), U64(tokens)];
    on.items("rows_place__portable", tokens * d.width, &arguments)
}
