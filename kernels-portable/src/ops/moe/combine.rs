//! The plain row of [`Combine`].

use super::experts;
use crate::ops::prelude::*;
use tandem_hal::Combine;

impl Portable for Combine {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/combine", run, any));
}

fn run(d: &Combine, io: &Arguments<Combine>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, views) = (on.at(Sym::Tokens), [io.x, io.expert, io.y].map(View));
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    on.items("moe_combine__portable", tokens * d.experts.hidden, &arguments)
}
