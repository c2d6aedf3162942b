//! The plain row of [`Rotate`].

use super::Rotation;
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, Rotate};

impl Portable for Rotate {
    const ROW: Option<PortableRow<Self>> = Some(portable("norm/rotate", run, accepts));
}

fn accepts(d: &Rotate, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    Rotation::of(d).map(|_| ())
}

fn run(d: &Rotate, io: &Arguments<Rotate>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, position]) = (on.at(Sym::Tokens), [io.x, io.position].map(View));
    let rotation = Rotation::of(d).map_err(refused::<Rotate>)?;
    let arguments = [
        x,
        position,
        Table(&rotation.table),
        U64(d.heads),
        U64(d.head_dim),
        U64(rotation.pairs),
        I32(rotation.group),
        U32(rotation.inverse),
        U64(tokens),
    ];
    on.items("norm_rotate__portable", tokens * d.heads * rotation.pairs, &arguments)
}
