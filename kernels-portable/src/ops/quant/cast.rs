//! The plain row of [`Cast`].

use super::Rule;
use crate::ops::prelude::*;
use tandem_hal::{Cast, DeviceInfo, Error};

impl Portable for Cast {
    const ROW: Option<PortableRow<Self>> = Some(portable("quant/cast", run, accepts));
}

fn accepts(d: &Cast, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    Rule::of(d.to).map(|_| ()).ok_or("e4m3fnuz is for matrix units of another vendor")
}

fn run(d: &Cast, io: &Arguments<Cast>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, y]) = (on.at(Sym::Tokens), [io.x, io.y].map(View));
    let unknown = || Error::BadDescriptor { op: "quant.cast", why: "no scale rule".into() };
    let (rule, block) = Rule::of(d.to).ok_or_else(unknown)?;
    let arguments = [x, y, U32(rule as u32), U64(block), U64(d.width), U64(tokens)];
    on.warps("quant_cast__portable", tokens * (d.width / block), &arguments)
}
