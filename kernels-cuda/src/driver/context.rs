//! An opened board.

use super::{Board, Result, failure::check, queue::Handle};
use cudarc::driver::sys::{self, CUcontext};
use std::{
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// The board's primary context, held until this is dropped. Everything made in it holds it.
#[derive(Debug)]
pub struct Context {
    board: Board,
    raw: CUcontext,
    /// Queues alive, so that memory can wait for them.
    queues: Mutex<Vec<Weak<Handle>>>,
}

// SAFETY: a context may be made current on any thread, and the driver locks what it shares.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a board.
    ///
    /// # Errors
    /// What the driver says, such as no memory left for a context.
    pub fn open(board: Board) -> Result<Arc<Context>> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, whose reference is given back when this is dropped.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, board.handle()) };
        check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Arc::new(Context { board, raw, queues: Mutex::default() }))
    }

    /// The board.
    pub fn board(&self) -> Board {
        self.board
    }

    /// Bytes free on the board, whoever holds the others.
    ///
    /// # Errors
    /// What the driver says.
    pub fn free_bytes(&self) -> Result<u64> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64)
    }

    /// Make it current on this thread, which the driver's other calls assume.
    pub(super) fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained as long as this lives.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    pub(super) fn enter(&self, queue: &Arc<Handle>) {
        let mut queues = self.queues();
        queues.retain(|q| q.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Wait for everything that is in flight. A queue that is being captured holds nothing in flight.
    /// Failures are left to whoever waits on the queue itself: after a fault nothing runs any more.
    pub(super) fn quiesce(&self) {
        let queues: Vec<_> = self.queues().iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            queue.pass();
        }
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Weak<Handle>>> {
        // The list is whole after every statement, so a poisoned lock still guards it.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: gives back the reference that `open` took; nothing made in the context is left, since
        // all of it holds this.
        let _at_the_end = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.board.handle()) };
    }
}
