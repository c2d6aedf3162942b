//! The plain row of [`MhcMean`].

use crate::ops::prelude::*;
use tandem_hal::MhcMean;

impl Portable for MhcMean {
    const ROW: Option<PortableRow<Self>> = Some(portable("mhc/mean", run, any));
}

fn run(d: &MhcMean, io: &Arguments<MhcMean>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [streams, y]) = (on.at(Sym::Tokens), [io.streams, io.y].map(View));
    let arguments = [streams, y, U64(d.streams), U64(d.width), U64(tokens)];
    on.items("mhc_mean__portable", tokens * d.width, &arguments)
}
