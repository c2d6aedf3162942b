//! The plain row of [`Store`].

use super::{entry, known};
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, Elem, Store};

impl Portable for Store {
    const ROW: Option<PortableRow<Self>> = Some(portable("kv/store", run, accepts));
}

fn accepts(d: &Store, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    known(&d.cache)
}

fn run(d: &Store, io: &Arguments<Store>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, at, cache]) = (on.at(Sym::Tokens), [io.x, io.at, io.cache].map(View));
    let (entry, blocks) = entry(&d.cache, on.extents)?;
    let arguments = [x, at, cache, entry, U32((d.x == Elem::F32).into()), U64(tokens)];
    on.warps("kv_store__portable", tokens * blocks, &arguments)
}
