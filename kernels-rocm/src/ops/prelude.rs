//! What every file of rows uses.

pub(super) use crate::rows::{ALL, Launch, Rows, portable, tuned};
pub(super) use tandem_hal::{Result, Row, Sym};
pub(super) use tandem_portable::{
    Argument::{U64, View},
    Arguments, Launcher, refused,
};
