//! What every file of rows uses.

pub(super) use crate::{
    driver::Argument::{F32, U32, U64, View},
    launcher::Launcher,
    rows::{Arguments, Launch, Rows, any, portable},
};
pub(super) use tandem_hal::{Result, Row, Sym};
