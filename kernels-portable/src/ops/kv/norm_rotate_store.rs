//! The plain row of [`NormRotateStore`].

use super::{entry, known};
use crate::ops::{norm::Rotation, prelude::*};
use tandem_hal::{DeviceInfo, NormRotateStore};

/// Threads of a block, as the kernel's source has it.
const THREADS: u32 = 512;

impl Portable for NormRotateStore {
    const ROW: Option<PortableRow<Self>> = Some(fused("kv/norm_rotate_store", run, accepts));
}

fn accepts(d: &NormRotateStore, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    known(&d.cache).and_then(|()| Rotation::of(&d.rotate).map(|_| ()))
}

fn run(d: &NormRotateStore, io: &Arguments<NormRotateStore>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight]) = (on.at(Sym::Tokens), [io.x, io.weight].map(View));
    let [position, at, cache] = [io.position, io.at, io.cache].map(View);
    let (entry, _) = entry(&d.cache, on.extents)?;
    let rotation = Rotation::of(&d.rotate).map_err(refused::<NormRotateStore>)?;
    let arguments = [
        x,
        weight,
        position,
        at,
        cache,
        Table(&rotation.table),
        entry,
        U64(rotation.pairs),
        F32(d.eps.value()),
        I32(rotation.group),
        U32(rotation.inverse),
        U64(tokens),
    ];
    on.rows("kv_norm_rotate_store__portable", tokens, THREADS, &arguments)
}
