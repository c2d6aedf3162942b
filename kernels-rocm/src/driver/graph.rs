//! Recorded work.

use std::ptr;
use std::sync::Arc;

use super::bindings::{hipGraph_t, hipGraphExec_t};
use super::{Context, Result};

/// A capture, ready to run again.
#[derive(Debug)]
pub struct ExecutableGraph {
    context: Arc<Context>,
    raw: hipGraphExec_t,
}

// SAFETY: graph handles may be used from any thread, by one at a time: they are not `Sync`.
unsafe impl Send for ExecutableGraph {}

impl ExecutableGraph {
    /// Makes a captured graph runnable.
    ///
    /// # Safety
    /// `graph` must be a graph of the context that nobody else holds; it is destroyed here.
    pub(super) unsafe fn of(context: &Arc<Context>, graph: hipGraph_t) -> Result<ExecutableGraph> {
        let (hip, mut raw) = (context.hip(), ptr::null_mut());
        // SAFETY: the graph is alive; writes one handle, destroyed when this is dropped.
        let code = unsafe { (hip.hipGraphInstantiateWithFlags)(&mut raw, graph, 0) };
        // SAFETY: handed over by the caller, and of no use any more.
        let _copied = unsafe { (hip.hipGraphDestroy)(graph) };
        context.check("hipGraphInstantiateWithFlags", code)?;
        Ok(ExecutableGraph { context: context.clone(), raw })
    }

    pub(super) fn raw(&self) -> hipGraphExec_t {
        self.raw
    }
}

impl Drop for ExecutableGraph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // A run of it may be in flight.
            self.context.quiesce();
            // SAFETY: the handle is ours.
            let _at_the_end = unsafe { (self.context.hip().hipGraphExecDestroy)(self.raw) };
        }
    }
}
