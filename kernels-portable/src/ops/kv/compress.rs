//! The plain row of [`Compress`].

use super::entry;
use crate::ops::prelude::*;
use tandem_hal::Compress;

impl Portable for Compress {
    const ROW: Option<PortableRow<Self>> = Some(portable("kv/compress", run, any));
}

fn run(d: &Compress, io: &Arguments<Compress>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [open, members, y]) = (on.at(Sym::Tokens), [io.open, io.members, io.y].map(View));
    let (entry, _) = entry(&d.open, on.extents)?;
    let arguments = [open, members, y, entry, U64(d.ratio), U64(tokens)];
    on.items("kv_compress__portable", tokens * d.open.width() / 2, &arguments)
}
