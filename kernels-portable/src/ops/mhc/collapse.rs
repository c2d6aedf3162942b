//! The plain row of [`MhcCollapse`].

use crate::ops::prelude::*;
use tandem_hal::MhcCollapse;

impl Portable for MhcCollapse {
    const ROW: Option<PortableRow<Self>> = Some(portable("mhc/collapse", run, any));
}

fn run(d: &MhcCollapse, io: &Arguments<MhcCollapse>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [streams, pre, y]) = (on.at(Sym::Tokens), [io.streams, io.pre, io.y].map(View));
    let arguments = [streams, pre, y, U64(d.streams), U64(d.width), U64(tokens)];
    on.items("mhc_collapse__portable", tokens * d.width, &arguments)
}
