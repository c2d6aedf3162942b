//! The plain row of [`Requant`].

use crate::ops::prelude::*;
use tandem_hal::Requant;

impl Portable for Requant {
    const ROW: Option<PortableRow<Self>> = Some(portable("quant/requant", run, any));
}

fn run(d: &Requant, io: &Arguments<Requant>, on: &Launcher<'_>) -> Result<()> {
    let scales = d.n.div_ceil(d.tile) * d.k.div_ceil(d.tile);
    let arguments = [View(io.x), View(io.y), U64(d.n), U64(d.k), U64(scales)];
    on.items("quant_requant__portable", d.n * d.k, &arguments)
}
