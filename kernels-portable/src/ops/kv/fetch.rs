//! The plain row of [`Fetch`].

use super::{entry, known};
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, Elem, Fetch};

impl Portable for Fetch {
    const ROW: Option<PortableRow<Self>> = Some(portable("kv/fetch", run, accepts));
}

fn accepts(d: &Fetch, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    known(&d.cache)
}

fn run(d: &Fetch, io: &Arguments<Fetch>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [cache, at, y]) = (on.at(Sym::Tokens), [io.cache, io.at, io.y].map(View));
    let (entry, _) = entry(&d.cache, on.extents)?;
    let arguments = [cache, at, y, entry, U32((d.y == Elem::F32).into()), U64(tokens)];
    on.items("kv_fetch__portable", tokens * d.cache.width(), &arguments)
}
