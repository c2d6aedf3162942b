//! The plain row of [`RmsNormRotate`].

use super::Rotation;
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, RmsNormRotate};

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 256;

impl Portable for RmsNormRotate {
    const ROW: Option<PortableRow<Self>> = Some(fused("norm/rms_rotate", run, accepts));
}

fn accepts(d: &RmsNormRotate, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    Rotation::of(&d.rotate).map(|_| ())
}

fn run(d: &RmsNormRotate, io: &Arguments<RmsNormRotate>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [x, weight, position, y] = [io.x, io.weight, io.position, io.y].map(View);
    let rotation = Rotation::of(&d.rotate).map_err(refused::<RmsNormRotate>)?;
    let arguments = [
        x,
        weight,
        position,
        y,
        Table(&rotation.table),
        U64(d.rotate.head_dim),
        U64(rotation.pairs),
        F32(d.eps.value()),
        I32(rotation.group),
        U32(rotation.inverse),
        U64(tokens),
    ];
    on.rows("norm_rms_rotate__portable", tokens, THREADS, &arguments)
}
