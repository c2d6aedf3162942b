//! From checked operands to launches.

#![allow(unsafe_code)]

use crate::{
    driver::{Argument, Module, Queue, Shape, TensorMap, Tile, ViewArgument},
    group::Member,
    memory::Memory,
    shared::Shared,
};
use tandem_hal::{Error, Extents, Result, Sym, View};
use tandem_portable::Peers;

/// What runs kernels.
pub(crate) trait Target {
    /// Run a kernel of the row's image.
    ///
    /// # Errors
    /// What the device says.
    fn launch(&self, kernel: &str, shape: &Shape, arguments: &[Argument<'_>]) -> Result<()>;

    /// Describe a tensor at the address of an operand for the copy engine.
    ///
    /// # Errors
    /// When the engine cannot move it.
    fn tensor_map(&self, address: u64, tile: &Tile) -> Result<TensorMap>;

    /// Multiprocessors, for kernels whose blocks walk over tiles. No result depends on it.
    ///
    /// # Errors
    /// What the device says.
    fn multiprocessors(&self) -> Result<u64>;

    /// The group, if it has several ranks.
    fn peers(&self) -> Option<&Peers> {
        None
    }
}

/// Where the launches of one operator go.
pub(crate) struct Launcher<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) extents: &'a Extents,
    /// Scratch of what the row needs for these extents; bytes, nothing for a row that needs none.
    pub(crate) workspace: ViewArgument,
}

impl Launcher<'_> {
    /// The launch's value of a dim.
    pub(crate) fn at(&self, sym: Sym) -> u64 {
        self.extents.at(sym)
    }

    /// Where plain kernels go.
    pub(crate) fn plain(&self) -> tandem_portable::Launcher<'_> {
        tandem_portable::Launcher { target: self, extents: self.extents, workspace: self.workspace }
    }

    /// As [`Target::multiprocessors`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn multiprocessors(&self) -> Result<u64> {
        self.target.multiprocessors()
    }

    /// As [`Target::tensor_map`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn tensor_map(&self, address: u64, tile: &Tile) -> Result<TensorMap> {
        self.target.tensor_map(address, tile)
    }

    /// Launch a kernel of the row's image; nothing for an empty grid.
    ///
    /// # Errors
    /// What the target says.
    pub(crate) fn launch(
        &self,
        kernel: &str,
        shape: &Shape,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        if shape.is_empty() { Ok(()) } else { self.target.launch(kernel, shape, arguments) }
    }
}

impl tandem_portable::Target for Launcher<'_> {
    fn launch(
        &self,
        kernel: &str,
        blocks: u32,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // They wait themselves for what is in front of them; those of collectives do not.
        let programmatic = kernel.contains("__portable");
        let shape = Shape { programmatic, ..Shape::flat(blocks, threads) };
        Launcher::launch(self, kernel, &shape, arguments)
    }

    fn peers(&self) -> Option<&Peers> {
        self.target.peers()
    }
}

/// A queue of a device. Only made for operands that passed the operand check.
pub(crate) struct OnDevice<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) queue: &'a Queue,
    pub(crate) module: &'a Module,
}

impl Target for OnDevice<'_> {
    fn launch(&self, kernel: &str, shape: &Shape, arguments: &[Argument<'_>]) -> Result<()> {
        let function = self.module.function(kernel).map_err(Error::from)?;
        // SAFETY: every address among the arguments is that of a view which passed the plan's operand
        // check: it lies within its reservation, is of the contract's extents, and no output overlaps
        // another operand. Reservations are freed only after this queue has passed, and graphs hold the
        // views they recorded; windows of a group live as long as any of its ranks. Kernels mask indices and counts outside, as the pages say.
        let launched = unsafe { self.queue.launch(function, shape, arguments) };
        launched.map_err(|failure| self.shared.fail(failure))
    }

    fn multiprocessors(&self) -> Result<u64> {
        Ok(self.shared.context().board().multiprocessors()?)
    }

    fn peers(&self) -> Option<&Peers> {
        self.shared.member().map(Member::peers)
    }

    fn tensor_map(&self, address: u64, tile: &Tile) -> Result<TensorMap> {
        Ok(TensorMap::at(self.shared.context().board().driver(), address, tile)?)
    }
}

/// An operand as kernels get it.
///
/// # Errors
/// [`Error::ForeignObject`] when its memory is another backend's.
pub(crate) fn argument(view: &View) -> Result<ViewArgument> {
    if view.is_empty() {
        return Ok(ViewArgument::default());
    }
    let base = Memory::of(view)?.address();
    Ok(ViewArgument {
        codes: base + view.offset(),
        scales: base + view.scale_offset(),
        stride: view.stride(),
    })
}
