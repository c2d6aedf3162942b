//! What every file of rows uses.

pub(super) use crate::{
    launcher::Launcher,
    rows::{Launch, Rows, hopper, portable},
};
pub(super) use tandem_hal::{Result, Row, Sym};
pub(super) use tandem_portable::{
    Argument::{F32, U32, U64, View},
    Arguments, refused,
};
