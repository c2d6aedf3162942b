//! Caches as kernels get them.

use crate::{Argument, EntryArgument, ops::quant::Rule};
use tandem_hal::{Cache, Error, Extents, Form, Record};

/// Arrangements of an entry: `Form` of the device headers.
#[derive(Clone, Copy)]
enum Arrangement {
    Scaled = 0,
    Rope = 1,
    Bf16 = 2,
    F32 = 3,
}

/// Arrangement, rule, and elements under a scale.
fn arrangement(record: Record) -> Option<(Arrangement, Rule, u32)> {
    // Without scales blocks are what a warp stores at once.
    let plain = 1 << record.width.trailing_zeros().min(5);
    match record.form {
        Form::Mxfp8 => Some((Arrangement::Scaled, Rule::Fp8, 32)),
        Form::Mxfp4 => Some((Arrangement::Scaled, Rule::Mxfp4, 32)),
        Form::Nvfp4 => Some((Arrangement::Scaled, Rule::Nvfp4, 16)),
        Form::Fp8 => Some((Arrangement::Scaled, Rule::Fp8F32, record.width)),
        // The rotary values are a block of their own, the last one.
        Form::Fp8Rope => Some((Arrangement::Rope, Rule::Fp8, 64)),
        Form::Bf16 => Some((Arrangement::Bf16, Rule::Fp8, plain)),
        Form::F32 => Some((Arrangement::F32, Rule::Fp8, plain)),
        Form::Mxfp8Fnuz => None,
    }
}

/// Whether kernels here have the records of a cache.
///
/// # Errors
/// Why not.
pub fn known(cache: &Cache) -> Result<(), &'static str> {
    let known = arrangement(cache.record).map(|_| ());
    known.ok_or("e4m3fnuz is for matrix units of another vendor")
}

/// The entries of a cache, and how many blocks each has.
///
/// # Errors
/// [`Error::BadDescriptor`] for records that are not [`known`].
pub fn entry(cache: &Cache, extents: &Extents) -> tandem_hal::Result<(Argument<'static>, u64)> {
    let unknown = || Error::BadDescriptor { op: "kv", why: "no rule for the record".into() };
    let (form, rule, block) = arrangement(cache.record).ok_or_else(unknown)?;
    let width = cache.record.width;
    let argument = EntryArgument {
        form: form as u32,
        rule: rule as u32,
        block,
        width,
        bytes: cache.record.bytes(),
        page_entries: u32::try_from(cache.page_entries).unwrap_or(u32::MAX),
        entries: extents.at(cache.pages) * cache.page_entries,
    };
    Ok((Argument::Entry(argument), (width / block).into()))
}
