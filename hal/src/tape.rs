//! Launches written down instead of run.

use crate::{Checked, Error, Extents, Graph, Kernel, Op, Result, Stream, Ticket, View};
use std::{cell::RefCell, sync::Arc};

/// A stream that keeps what is launched on it, checked and in order, to be run later: at once, in a
/// capture, or some of it in one and some not. It takes launches and nothing else.
#[derive(Default)]
pub struct Tape {
    launches: RefCell<Vec<Launch>>,
}

/// A launch on a [`Tape`]. Holds the memory of its operands alive.
pub struct Launch {
    op: Arc<Op>,
    kernel: Arc<dyn Kernel>,
    views: Vec<View>,
    workspace: View,
    extents: Extents,
}

impl Launch {
    /// The descriptor. An operator that runs by its decomposition is one launch.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// The operands in order of declaration.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// Scratch of the kernel.
    pub fn workspace(&self) -> &View {
        &self.workspace
    }

    /// Runs it on `on`, a stream of the device it was planned for.
    ///
    /// # Errors
    /// As [`Plan::launch`](crate::Plan::launch).
    pub fn run(&self, on: &dyn Stream) -> Result<()> {
        let views: Vec<&View> = self.views.iter().collect();
        self.kernel.launch(&Checked::new(&self.op, &views, &self.workspace, self.extents), on)
    }
}

impl Tape {
    /// What was launched, in order.
    pub fn into_launches(self) -> Vec<Launch> {
        self.launches.into_inner()
    }

    pub(crate) fn push(&self, op: &Arc<Op>, kernel: &Arc<dyn Kernel>, io: &Checked<'_>) {
        let views = io.views().iter().map(|view| (*view).clone()).collect();
        let (workspace, extents) = (io.workspace().clone(), *io.extents());
        let (op, kernel) = (op.clone(), kernel.clone());
        self.launches.borrow_mut().push(Launch { op, kernel, views, workspace, extents });
    }
}

/// What a tape says to all but launches.
fn refused<T>(call: &str) -> Result<T> {
    let reason = format!("a tape takes launches, not {call}");
    Err(Error::Unsupported { op: "stream".into(), reason })
}

impl Stream for Tape {
    fn write(&self, _to: &View, _bytes: &[u8]) -> Result<()> {
        refused("a write")
    }
    fn read(&self, _from: &View) -> Result<Vec<u8>> {
        refused("a read")
    }
    fn read_later(&self, _from: &View) -> Result<Box<dyn Ticket>> {
        refused("a read")
    }
    fn mark(&self) -> Result<Box<dyn Ticket>> {
        refused("a mark")
    }
    fn fill(&self, _to: &View, _byte: u8) -> Result<()> {
        refused("a fill")
    }
    fn capture(&self, _body: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Graph>> {
        refused("a capture")
    }
    fn replay(&self, _graph: &dyn Graph) -> Result<()> {
        refused("a replay")
    }
    fn wait(&self, _other: &dyn Stream) -> Result<()> {
        refused("a wait")
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
