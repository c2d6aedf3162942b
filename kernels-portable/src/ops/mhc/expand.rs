//! The plain row of [`MhcExpand`].

use crate::ops::prelude::*;
use tandem_hal::MhcExpand;

impl Portable for MhcExpand {
    const ROW: Option<PortableRow<Self>> = Some(portable("mhc/expand", run, any));
}

fn run(d: &MhcExpand, io: &Arguments<MhcExpand>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, residual, post, comb, y]) =
        (on.at(Sym::Tokens), [io.x, io.residual, io.post, io.comb, io.y].map(View));
    let arguments = [x, residual, post, comb, y, U64(d.streams), U64(d.width), U64(tokens)];
    on.items("mhc_expand__portable", tokens * d.streams * d.width, &arguments)
}
