//! The plain row of [`Embed`].

use crate::ops::prelude::*;
use tandem_hal::Embed;

impl Portable for Embed {
    const ROW: Option<PortableRow<Self>> = Some(portable("rows/embed", run, any));
}

fn run(d: &Embed, io: &Arguments<Embed>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [id, table, y]) = (on.at(Sym::Tokens), [io.id, io.table, io.y].map(View));
    let arguments = [id, table, y, U64(d.vocab), U64(d.width), U64(tokens)];
    on.items("rows_embed__portable", tokens * d.width, &arguments)
}
