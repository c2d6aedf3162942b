//! The plain row of [`Swiglu`].

use crate::ops::prelude::*;
use tandem_hal::Swiglu;

impl Portable for Swiglu {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/swiglu", run, any));
}

fn run(d: &Swiglu, io: &Arguments<Swiglu>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, weight, y]) = (on.at(Sym::Tokens), [io.x, io.weight, io.y].map(View));
    let limit = F32(d.limit.value());
    let arguments = [x, weight, y, U64(d.slots), U64(d.inter), limit, U64(tokens)];
    on.items("moe_swiglu__portable", tokens * d.slots * d.inter, &arguments)
}
