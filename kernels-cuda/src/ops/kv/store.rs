//! Rows of [`Store`].

use crate::ops::{prelude::*, quant::Rule};
use tandem_hal::{DeviceInfo, Elem, Error, Form, Record, Store};

impl Rows for Store {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const { &[portable::<Self>("kv/store", run, accepts)] }
    }
}

fn accepts(d: &Store, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    entry(d.cache.record).map(|_| ()).ok_or("e4m3fnuz is for matrix units of another vendor")
}

/// Arrangements of an entry: `Form` of the kernel's source.
#[derive(Clone, Copy)]
enum Arrangement {
    Scaled = 0,
    Rope = 1,
    Bf16 = 2,
    F32 = 3,
}

/// An entry in blocks, one a thread: arrangement, rule, elements of a block, blocks.
fn entry(record: Record) -> Option<(Arrangement, Rule, u64, u64)> {
    let width = u64::from(record.width);
    let scaled = |rule, block: u64| Some((Arrangement::Scaled, rule, block, width / block));
    match record.form {
        Form::Mxfp8 => scaled(Rule::Fp8, 32),
        Form::Mxfp4 => scaled(Rule::Mxfp4, 32),
        Form::Nvfp4 => scaled(Rule::Nvfp4, 16),
        Form::Fp8 => scaled(Rule::Fp8F32, width),
        // The rotary values are a block of their own, the last one.
        Form::Fp8Rope => Some((Arrangement::Rope, Rule::Fp8, 64, width / 64)),
        Form::Bf16 => Some((Arrangement::Bf16, Rule::Fp8, 1, width)),
        Form::F32 => Some((Arrangement::F32, Rule::Fp8, 1, width)),
        Form::Mxfp8Fnuz => None,
    }
}

fn run(d: &Store, io: &Arguments<Store>, on: &Launcher<'_>) -> Result<()> {
    let (record, page_entries) = (d.cache.record, d.cache.page_entries);
    let unknown = || Error::BadDescriptor { op: "kv.store", why: "no rule for the record".into() };
    let (arrangement, rule, block, blocks) = entry(record).ok_or_else(unknown)?;
    let (tokens, entries) = (on.at(Sym::Tokens), on.at(d.cache.pages) * page_entries);
    let [x, at, cache] = [io.x, io.at, io.cache].map(View);
    let arguments = [
        x,
        at,
        cache,
        U32(arrangement as u32),
        U32(rule as u32),
        U64(block),
        U64(blocks),
        U64(record.width.into()),
        U64(record.bytes()),
        U32((d.x == Elem::F32).into()),
        U64(page_entries),
        U64(entries),
        U64(tokens),
    ];
    on.items("kv_store__portable", tokens * blocks, &arguments)
}
