//! Rows of [`AddShared`].

use crate::ops::prelude::*;
use tandem_hal::AddShared;

impl Rows for AddShared {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("moe/add_shared", run, any)] }
    }
}

fn run(d: &AddShared, io: &Arguments<AddShared>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [routed, shared, y]) =
        (on.at(Sym::Tokens), [io.routed, io.shared, io.y].map(View));
    let arguments = [routed, shared, y, U64(d.hidden), U64(tokens)];
    on.items("moe_add_shared__portable", tokens * d.hidden, &arguments)
}
