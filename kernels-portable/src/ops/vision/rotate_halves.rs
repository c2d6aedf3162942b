//! The plain row of [`RotateHalves`].

use crate::ops::prelude::*;
use crate::{TableArgument, ops::norm::table};
use tandem_hal::{DeviceInfo, RotateHalves};

impl Portable for RotateHalves {
    const ROW: Option<PortableRow<Self>> = Some(portable("vision/rotate_halves", run, accepts));
}

fn accepts(d: &RotateHalves, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    frequencies(d).map(|_| ())
}

/// The table that kernels get.
fn frequencies(d: &RotateHalves) -> std::result::Result<TableArgument, &'static str> {
    // The count comes first: the frequencies of any descriptor are not made.
    let few = d.head_dim / 4 <= 256;
    let table = few.then(|| table(&d.frequencies())).flatten();
    table.ok_or("heads of more than 1024 dims, or frequencies above 1")
}

fn run(d: &RotateHalves, io: &Arguments<RotateHalves>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, row, column]) = (on.at(Sym::Tokens), [io.x, io.row, io.column].map(View));
    let table = frequencies(d).map_err(refused::<RotateHalves>)?;
    let table = Table(&table);
    let arguments = [x, row, column, table, U64(d.heads), U64(d.head_dim), U64(tokens)];
    on.items("vision_rotate_halves__portable", tokens * d.heads * d.head_dim / 2, &arguments)
}
