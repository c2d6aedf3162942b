//! The plain row of [`AddShared`].

use crate::ops::prelude::*;
use tandem_hal::AddShared;

impl Portable for AddShared {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/add_shared", run, any));
}

fn run(d: &AddShared, io: &Arguments<AddShared>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [routed, shared, y]) =
        (on.at(Sym::Tokens), [io.routed, io.shared, io.y].map(View));
    let arguments = [routed, shared, y, U64(d.hidden), U64(tokens)];
    on.items("moe_add_shared__portable", tokens * d.hidden, &arguments)
}
