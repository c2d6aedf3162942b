//! The plain row of [`Locate`].

use crate::ops::prelude::*;
use tandem_hal::Locate;

impl Portable for Locate {
    const ROW: Option<PortableRow<Self>> = Some(portable("kv/locate", run, any));
}

fn run(d: &Locate, io: &Arguments<Locate>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [entry, sequence, table, y] = [io.entry, io.sequence, io.table, io.y].map(View);
    let arguments = [
        entry,
        sequence,
        table,
        y,
        U64(on.at(Sym::Sequences)),
        U64(on.at(Sym::TablePages)),
        U64(d.page_entries),
        U64(d.count),
        U64(tokens),
    ];
    on.items("kv_locate__portable", tokens * d.count, &arguments)
}
