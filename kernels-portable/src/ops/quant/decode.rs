//! The plain row of [`Decode`].

use crate::ops::prelude::*;
use tandem_hal::{Decode, DeviceInfo, Elem, Enc};

/// Why a descriptor is not accepted.
const REFUSED: &str = "codes or scales that no block format has";

impl Portable for Decode {
    const ROW: Option<PortableRow<Self>> = Some(portable("quant/decode", run, accepts));
}

fn accepts(d: &Decode, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    parts(d.from).map(|_| ()).ok_or(REFUSED)
}

/// Codes and scales by `Elem` of the kernel's source, and the codes under one scale.
fn parts(enc: Enc) -> Option<(u32, u32, u64)> {
    let Enc::Scaled { code, scale, rows: 1, cols } = enc else { return None };
    Some((number(code)?, number(scale)?, cols.into()))
}

fn number(elem: Elem) -> Option<u32> {
    match elem {
        Elem::F32 => Some(0),
        Elem::E4m3Fn => Some(1),
        Elem::E4m3Fnuz => Some(2),
        Elem::E2m1 => Some(3),
        Elem::Ue8m0 => Some(4),
        Elem::Bf16 | Elem::I32 | Elem::U32 | Elem::U8 => None,
    }
}

fn run(d: &Decode, io: &Arguments<Decode>, on: &Launcher<'_>) -> Result<()> {
    let (tokens, [x, y]) = (on.at(Sym::Tokens), [io.x, io.y].map(View));
    let (code, scale, block) = parts(d.from).ok_or_else(|| refused::<Decode>(REFUSED))?;
    let arguments = [x, y, U32(code), U32(scale), U64(block), U64(d.width), U64(tokens)];
    on.items("quant_decode__portable", tokens * d.width, &arguments)
}
