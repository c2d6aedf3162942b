//! Ordered work on a board.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_portable::Argument;

use super::bindings::{
    hipMemcpyDefault, hipStream_t, hipStreamCaptureModeRelaxed, hipStreamNonBlocking,
};
use super::{Context, Event, ExecutableGraph, Failure, Function, Result, Span};

/// What the words of a launch's last argument mean: a pointer to packed arguments follows, a pointer to their
/// size, nothing. The headers say so in macros.
const ARGUMENTS: *mut c_void = ptr::without_provenance_mut(1);
const ARGUMENTS_SIZE: *mut c_void = ptr::without_provenance_mut(2);
const END: *mut c_void = ptr::without_provenance_mut(3);

/// The driver's stream, shared by a queue and whoever waits for it.
#[derive(Debug)]
pub(super) struct Handle {
    context: Arc<Context>,
    raw: hipStream_t,
    /// Whether it is part of a capture: then it holds nothing in flight, and waiting for it would
    /// end the capture.
    capturing: Mutex<bool>,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above; the driver locks what its calls share.
unsafe impl Sync for Handle {}

impl Handle {
    fn capturing(&self) -> MutexGuard<'_, bool> {
        // One flag is always whole, so a poisoned lock still guards it.
        self.capturing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait until it is empty, unless it is being captured. The lock is held meanwhile, so that no
    /// capture begins under the wait.
    pub(super) fn pass(&self) {
        let capturing = self.capturing();
        if !*capturing {
            // After a fault nothing is in flight; whoever uses the queue is told.
            let _told_elsewhere = self.synchronise();
        }
    }

    fn synchronise(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        let code = unsafe { (self.context.hip().hipStreamSynchronize)(self.raw) };
        self.context.check("hipStreamSynchronize", code)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Memory waits for the queues it knows, so work left in one that is destroyed must end first.
        let _at_the_end = self.synchronise();
        if self.context.bind().is_ok() {
            // SAFETY: the handle is ours, and empty.
            let _at_the_end = unsafe { (self.context.hip().hipStreamDestroy)(self.raw) };
        }
    }
}

/// A stream of work, in order. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Queue {
    handle: Arc<Handle>,
}

impl Queue {
    /// An empty queue, which runs beside the default stream instead of in turn with it.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(context: &Arc<Context>) -> Result<Queue> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        let create = context.hip().hipStreamCreateWithFlags;
        // SAFETY: writes one handle, destroyed when the last clone is dropped.
        let code = unsafe { create(&mut raw, hipStreamNonBlocking) };
        context.check("hipStreamCreateWithFlags", code)?;
        let capturing = Mutex::new(false);
        let handle = Arc::new(Handle { context: context.clone(), raw, capturing });
        context.enter(&handle);
        Ok(Queue { handle })
    }

    pub(super) fn raw(&self) -> hipStream_t {
        self.handle.raw
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.handle.context
    }

    fn own(&self, span: &Span) -> Result<()> {
        if Arc::ptr_eq(span.context(), self.context()) {
            return self.context().bind();
        }
        Err(Failure::refused("hipMemcpyAsync", "memory of another context".into()))
    }

    /// Queue a copy of bytes that the board can reach, or the host can.
    ///
    /// # Safety
    /// Both places must have `length` bytes until the queue has passed.
    unsafe fn copy_bytes(&self, to: *mut c_void, from: *const c_void, length: usize) -> Result<()> {
        let copy = self.context().hip().hipMemcpyAsync;
        // SAFETY: the caller's promise; the driver sees by the addresses where they lie.
        let code = unsafe { copy(to, from, length as u64, hipMemcpyDefault, self.raw()) };
        self.context().check("hipMemcpyAsync", code)
    }

    /// Copy a span to `bytes` of its length, and wait for it.
    ///
    /// # Errors
    /// As [`Queue::copy`], and faults of earlier work.
    pub fn read(&self, from: &Span, bytes: &mut [u8]) -> Result<()> {
        self.own(from)?;
        from.require(bytes.len(), false)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the span lies in a reservation of as many bytes, which waits for this queue before it is
        // freed; the destination is borrowed until the wait below has ended.
        let copied =
            unsafe { self.copy_bytes(bytes.as_mut_ptr().cast(), from.pointer(), bytes.len()) };
        // Even a copy that was refused in part must not outlive the borrow.
        let passed = self.synchronise();
        copied.and(passed)
    }

    /// Copy between spans of one length.
    ///
    /// # Errors
    /// When the lengths differ, the memory is read-only or another context's, or what the driver says.
    pub fn copy(&self, from: &Span, to: &Span) -> Result<()> {
        self.own(from)?;
        self.own(to)?;
        to.require(from.length(), true)?;
        if from.length() == 0 {
            return Ok(());
        }
        // SAFETY: both spans lie in reservations that wait for this queue before they are freed.
        unsafe { self.copy_bytes(to.pointer(), from.pointer(), from.length()) }
    }

    /// Set every byte of a span.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    pub fn fill(&self, to: &Span, byte: u8) -> Result<()> {
        self.own(to)?;
        to.require(to.length(), true)?;
        if to.length() == 0 {
            return Ok(());
        }
        let fill = self.context().hip().hipMemsetAsync;
        // SAFETY: as in `copy`.
        let code = unsafe { fill(to.pointer(), byte.into(), to.length() as u64, self.raw()) };
        self.context().check("hipMemsetAsync", code)
    }

    /// Wait until it is empty.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn synchronise(&self) -> Result<()> {
        self.handle.synchronise()
    }

    /// Later work here runs after `event`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.context().bind()?;
        let wait = self.context().hip().hipStreamWaitEvent;
        // SAFETY: both handles are alive; the driver keeps what it needs of the event.
        let code = unsafe { wait(self.raw(), event.raw(), 0) };
        self.context().check("hipStreamWaitEvent", code)
    }

    /// Run a kernel over `blocks` of `threads`, at least one of each.
    ///
    /// # Errors
    /// When the launch is not one that the kernel takes, or what the driver says.
    ///
    /// # Safety
    /// The addresses among the arguments must be those of memory that the board reaches (or null where the
    /// kernel says so), of the extents that the other arguments tell, and alive until the queue has
    /// passed. Reservations of the context are.
    pub unsafe fn launch(
        &self,
        function: &Function,
        blocks: u32,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let mut packed = function.packed(threads, arguments)?;
        let mut packed_bytes = packed.len();
        self.context().bind()?;
        let mut extra = [
            ARGUMENTS,
            packed.as_mut_ptr().cast(),
            ARGUMENTS_SIZE,
            (&raw mut packed_bytes).cast(),
            END,
        ];
        let (launch, none) = (self.context().hip().hipModuleLaunchKernel, ptr::null_mut());
        let (raw, stream) = (function.raw(), self.raw());
        // SAFETY: number and sizes of the arguments were compared with the kernel's own, and lie where it reads
        // them; the driver copies them before it returns. What the kernel does with them is the caller's
        // promise.
        let code = unsafe {
            launch(raw, blocks, 1, 1, threads, 1, 1, 0, stream, none, extra.as_mut_ptr())
        };
        self.context().check("hipModuleLaunchKernel", code)
    }

    /// Begin to record instead of to run. What is in flight passes first.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn begin_capture(&self) -> Result<()> {
        let mut capturing = self.handle.capturing();
        self.synchronise()?;
        let begin = self.context().hip().hipStreamBeginCapture;
        // Relaxed: captures on other threads, and allocations meanwhile, are no business of this one.
        // SAFETY: the handle is alive.
        let code = unsafe { begin(self.raw(), hipStreamCaptureModeRelaxed) };
        self.context().check("hipStreamBeginCapture", code)?;
        *capturing = true;
        Ok(())
    }

    /// Become part of a capture that another queue began, by waiting on `event` of it. What is in
    /// flight passes first.
    ///
    /// # Errors
    /// As [`Queue::begin_capture`].
    pub fn join_capture(&self, event: &Event) -> Result<()> {
        let mut capturing = self.handle.capturing();
        if !*capturing {
            self.synchronise()?;
        }
        self.wait(event)?;
        *capturing = true;
        Ok(())
    }

    /// The capture that this queue is part of has ended.
    pub fn leave_capture(&self) {
        *self.handle.capturing() = false;
    }

    /// End the capture that this queue began.
    ///
    /// # Errors
    /// What went wrong while it was open.
    pub fn end_capture(&self) -> Result<ExecutableGraph> {
        let mut graph = ptr::null_mut();
        let bound = self.context().bind();
        // SAFETY: writes one handle, or null.
        let code = unsafe { (self.context().hip().hipStreamEndCapture)(self.raw(), &mut graph) };
        self.leave_capture();
        bound?;
        self.context().check("hipStreamEndCapture", code)?;
        // SAFETY: the graph was made just now and is handed over.
        unsafe { ExecutableGraph::of(self.context(), graph) }
    }

    /// Run a graph.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// As [`Queue::launch`], for every launch that was recorded.
    pub unsafe fn replay(&self, graph: &ExecutableGraph) -> Result<()> {
        self.context().bind()?;
        // SAFETY: both handles are alive; the rest is the caller's promise.
        let code = unsafe { (self.context().hip().hipGraphLaunch)(graph.raw(), self.raw()) };
        self.context().check("hipGraphLaunch", code)
    }
}
