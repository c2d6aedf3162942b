//! The plain row of [`CombineScaled`].

use crate::ops::prelude::*;
use tandem_hal::{CombineScaled, ScalePlacement};

impl Portable for CombineScaled {
    const ROW: Option<PortableRow<Self>> = Some(portable("moe/combine_scaled", run, any));
}

/// Places of the factor: `Placement` of the kernel's source.
fn number(placement: ScalePlacement) -> u32 {
    match placement {
        ScalePlacement::Weights => 0,
        ScalePlacement::Sum => 1,
        ScalePlacement::Kernel => 2,
    }
}

fn run(d: &CombineScaled, io: &Arguments<CombineScaled>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let [x, weight, shared, y] = [io.x, io.weight, io.shared, io.y].map(View);
    let (placement, factor) = (U32(number(d.placement)), F32(d.factor.value()));
    let (top_k, hidden) = (U64(d.top_k), U64(d.hidden));
    let arguments = [x, weight, shared, y, placement, factor, top_k, hidden, U64(tokens)];
    on.items("moe_combine_scaled__portable", tokens * d.hidden, &arguments)
}
