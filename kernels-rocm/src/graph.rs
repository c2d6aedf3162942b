//! Recorded launches.

#![allow(unsafe_code)]

use std::sync::Arc;

use tandem_hal::{Graph, View};

use crate::driver::{self, ExecutableGraph, Queue};
use crate::kernel::Run;
use crate::shared::Shared;

/// One launch that was recorded, with what it needs alive: its memory and its kernels.
pub(crate) struct Node {
    pub(crate) run: Arc<dyn Run>,
    pub(crate) _views: Vec<View>,
}

/// A graph of one device.
pub(crate) struct RocmGraph {
    // Before the memory that it uses.
    pub(crate) graph: ExecutableGraph,
    pub(crate) nodes: Vec<Node>,
    pub(crate) shared: Arc<Shared>,
}

impl RocmGraph {
    /// Queue it again.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn run_on(&self, queue: &Queue) -> driver::Result<()> {
        // SAFETY: every launch was recorded with operands that passed the operand check, and the nodes
        // hold their memory and kernels; dropping this waits for the queues of the context.
        unsafe { queue.replay(&self.graph) }
    }
}

impl Graph for RocmGraph {
    fn nodes(&self) -> usize {
        self.nodes.len()
    }
}
