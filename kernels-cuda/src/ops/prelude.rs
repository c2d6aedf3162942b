//! What every file of rows uses.

pub(super) use crate::{
    driver::Argument::{F32, I32, Table, U32, U64, View, Words},
    launcher::{Launcher, dot_lanes, row_threads},
    rows::{Arguments, Launch, Rows, any, fused, hopper, portable, refused, scratched},
};
pub(super) use tandem_hal::{Result, Row, Sym};
