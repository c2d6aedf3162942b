//! An opened board.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::bindings::{Hip, hipError_t, hipErrorPeerAccessAlreadyEnabled};
use super::queue::Handle;
use super::{Board, Failure, Result};

/// A board in use. Everything made on it holds this.
#[derive(Debug)]
pub struct Context {
    board: Board,
    /// Queues alive, so that memory can wait for them.
    queues: Mutex<Vec<Weak<Handle>>>,
}

impl Context {
    /// Opens a board.
    ///
    /// # Errors
    /// What the driver says, such as no memory left for its own needs.
    pub fn open(board: Board) -> Result<Arc<Context>> {
        let context = Arc::new(Context { board, queues: Mutex::default() });
        context.bind()?;
        Ok(context)
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
        let code = unsafe { (self.hip().hipMemGetInfo)(&mut free, &mut total) };
        self.check("hipMemGetInfo", code)?;
        Ok(free)
    }

    /// Let kernels of this board address memory of another. There and back are two calls.
    ///
    /// # Errors
    /// When the boards are not linked, or what the driver says.
    pub fn reach(&self, other: Board) -> Result<()> {
        let (here, there) = (self.board.ordinal(), other.ordinal());
        if here == there {
            return Ok(());
        }
        self.bind()?;
        let mut can = 0;
        // SAFETY: writes one integer.
        let code = unsafe { (self.hip().hipDeviceCanAccessPeer)(&mut can, here, there) };
        self.check("hipDeviceCanAccessPeer", code)?;
        if can == 0 {
            let why =
                format!("boards {here} and {there} are not linked; open others, or one alone");
            return Err(Failure::refused("hipDeviceCanAccessPeer", why));
        }
        // SAFETY: no memory is involved.
        match unsafe { (self.hip().hipDeviceEnablePeerAccess)(there, 0) } {
            hipErrorPeerAccessAlreadyEnabled => Ok(()),
            code => self.check("hipDeviceEnablePeerAccess", code),
        }
    }

    /// Make it the current one of this thread, which the driver's other calls assume.
    pub(super) fn bind(&self) -> Result<()> {
        // SAFETY: no memory is involved.
        let code = unsafe { (self.hip().hipSetDevice)(self.board.ordinal()) };
        self.check("hipSetDevice", code)
    }

    pub(super) fn hip(&self) -> &'static Hip {
        self.board.driver().functions()
    }

    /// The outcome of `call`.
    pub(super) fn check(&self, call: &'static str, code: hipError_t) -> Result<()> {
        self.board.driver().check(call, code)
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
