//! The plain row of [`ExpertDown`].

use super::{down, experts};
use crate::ops::prelude::*;
use tandem_hal::ExpertDown;

impl Portable for ExpertDown {
    const ROW: Option<PortableRow<Self>> = Some(fused("moe/expert_down", run, any));
}

fn run(d: &ExpertDown, io: &Arguments<ExpertDown>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, views) = (on.at(Sym::Tokens), [io.x, io.expert, io.w2, io.y].map(View));
    let arguments = experts::arguments(&views, &d.experts, &[U64(tokens)]);
    let blocks = tokens * down::tiles(&d.experts);
    on.rows("moe_expert_down__portable", blocks, down::THREADS, &arguments)
}
