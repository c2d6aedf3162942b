//! The plain row of [`EngramLookup`].

use crate::launcher::CHUNK;
use crate::ops::prelude::*;
use tandem_hal::EngramLookup;

impl Portable for EngramLookup {
    const ROW: Option<PortableRow<Self>> = Some(portable("engram/lookup", run, any));
}

fn run(d: &EngramLookup, io: &Arguments<EngramLookup>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [row, table, y]) = (on.at(Sym::Tokens), [io.row, io.table, io.y].map(View));
    let [rows, columns, head_dim] = [d.rows, d.columns, d.head_dim].map(U64);
    let arguments = [row, table, y, rows, columns, head_dim, U64(tokens)];
    on.items("engram_lookup__portable", tokens * d.columns * d.head_dim / CHUNK, &arguments)
}
