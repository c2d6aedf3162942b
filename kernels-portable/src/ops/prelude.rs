//! What every file of rows uses.

pub(super) use crate::{
    Argument::{F32, I32, Table, U32, U64, View, Words},
    Launcher, Portable, PortableRow,
    launcher::{dot_lanes, row_threads},
    row::{Arguments, any, fused, portable, refused, scratched},
};
pub(super) use tandem_hal::{Result, Sym};
