//! Where devices come from.

use crate::{Device, DeviceInfo, Error, Result, null::Null};
use std::sync::Arc;

/// How devices are opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `(operator, row)` pairs: this row and no other, whatever its rank or proof. The bits that
    /// several rows share name them all.
    pub overrides: Vec<(String, String)>,
}

impl Options {
    /// The row forced for an operator.
    pub fn forced(&self, op: &str) -> Option<&str> {
        self.overrides.iter().find(|(o, _)| o == op).map(|(_, row)| row.as_str())
    }
}

/// One backend.
pub trait Provider: Send + Sync {
    /// `reference`, `cuda` or `rocm`.
    fn name(&self) -> &'static str;

    /// The devices there are, by ordinal.
    ///
    /// # Errors
    /// [`Error::NoDevice`] with the reason when there is none: no driver, too old, no board.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Open the devices with these ordinals as the ranks of one group, in this order.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for an ordinal that is not there, or what the driver says.
    fn open(&self, ordinals: &[u32], options: &Options) -> Result<Vec<Arc<dyn Device>>>;

    /// The version of the driver under the devices, in one word; `None` without a driver.
    fn driver(&self) -> Option<String> {
        None
    }

    /// Digest of the machine code that a row of an operator has for an architecture, in hexadecimal;
    /// `None` where rows are not machine code of their own.
    fn image(&self, _op: &str, _row: &str, _arch: &str) -> Option<&'static str> {
        None
    }

    /// A device that counts and allocates nothing, fed by this backend's table for a board it need
    /// not see; for planning.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when the backend has no table for the board.
    fn pretend(&self, board: &str) -> Result<Null> {
        let reason = format!("the {} backend has no table for it", self.name());
        Err(Error::NoDevice { name: board.into(), reason })
    }
}
