//! The plain row of [`GatherRows`].

use crate::ops::prelude::*;
use tandem_hal::GatherRows;

impl Portable for GatherRows {
    const ROW: Option<PortableRow<Self>> = Some(portable("rows/gather", run, any));
}

fn run(d: &GatherRows, io: &Arguments<GatherRows>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, outputs) = (on.at(Sym::Tokens), on.at(Sym::Outputs));
    let [x, at, y] = [io.x, io.at, io.y].map(View);
    let kernel = match d.elem.bits() {
        8 => "rows_gather__portable_1",
        16 => "rows_gather__portable_2",
        _ => "rows_gather__portable_4",
    };
    let arguments = [x, at, y, U64(d.width), U64(tokens), U64(outputs)];
    on.items(kernel, outputs * d.width, &arguments)
}
