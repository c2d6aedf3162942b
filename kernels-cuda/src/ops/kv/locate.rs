//! Rows of [`Locate`].

use crate::ops::prelude::*;
use tandem_hal::Locate;

impl Rows for Locate {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("kv/locate", run, any)] }
    }
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
