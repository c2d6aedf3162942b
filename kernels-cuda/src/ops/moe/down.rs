//! Rows of [`Down`].

use super::experts;
use crate::ops::prelude::*;
use tandem_hal::Down;

impl Rows for Down {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("moe/down", run, any)] }
    }
}

/// Outputs of a block, one a thread, as the device header has it.
pub(super) const OUTPUTS: u32 = 128;

fn run(d: &Down, io: &Arguments<Down>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, views) = (on.at(Sym::Tokens), [io.x, io.expert, io.w2, io.y].map(View));
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let tiles = d.experts.hidden.div_ceil(OUTPUTS.into());
    on.rows("moe_down__portable", tokens * d.experts.top_k * tiles, OUTPUTS, &arguments)
}
