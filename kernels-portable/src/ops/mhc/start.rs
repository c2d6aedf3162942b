//! The plain row of [`MhcStart`].

use crate::ops::prelude::*;
use tandem_hal::MhcStart;

impl Portable for MhcStart {
    const ROW: Option<PortableRow<Self>> = Some(portable("mhc/start", run, any));
}

fn run(d: &MhcStart, io: &Arguments<MhcStart>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, streams, pre]) = (on.at(Sym::Tokens), [io.x, io.streams, io.pre].map(View));
    let arguments = [x, streams, pre, U64(d.streams), U64(d.width), U64(tokens)];
    on.items("mhc_start__portable", tokens * d.streams * d.width, &arguments)
}
