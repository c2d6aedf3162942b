//! What plain kernels are launched on.

use crate::{Argument, Peers};
use tandem_hal::Result;

/// A queue of a device with a row's image loaded, or what stands in for one.
pub trait Target {
    /// Runs a kernel of the row's image: at least one block of `threads`, in one dimension, without shared memory but the
    /// kernel's own.
    ///
    /// # Errors
    /// What the device says.
    fn launch(
        &self,
        kernel: &str,
        blocks: u32,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()>;

    /// The group, if it has several ranks.
    fn peers(&self) -> Option<&Peers>;
}
