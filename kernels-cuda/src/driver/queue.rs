//! Ordered work on a board.

use super::{
    Argument, Context, Event, ExecutableGraph, Failure, Function, Result, Shape, Span,
    failure::check,
};
use cudarc::driver::sys::{self, CUstream, CUstreamCaptureMode};
use std::{
    ffi::c_void,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Runs beside the default stream instead of in turn with it (`CU_STREAM_NON_BLOCKING`).
const NON_BLOCKING: u32 = 1;

/// The driver's stream, shared by a queue and whoever waits for it.
#[derive(Debug)]
pub(super) struct Handle {
    context: Arc<Context>,
    raw: CUstream,
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
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the handle is ours. Memory waits for the queues it knows, so work left in one
            // that is destroyed must end first.
            let _at_the_end = unsafe { sys::cuStreamSynchronize(self.raw) };
            // SAFETY: as above.
            let _at_the_end = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A stream of work, in order. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Queue {
    handle: Arc<Handle>,
}

impl Queue {
    /// An empty queue.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(context: &Arc<Context>) -> Result<Queue> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, destroyed when the last clone is dropped.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut raw, NON_BLOCKING) })?;
        let capturing = Mutex::new(false);
        let handle = Arc::new(Handle { context: context.clone(), raw, capturing });
        context.enter(&handle);
        Ok(Queue { handle })
    }

    pub(super) fn raw(&self) -> CUstream {
        self.handle.raw
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.handle.context
    }

    /// Whether two are one.
    pub fn is(&self, other: &Queue) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    fn own(&self, span: &Span) -> Result<()> {
        if Arc::ptr_eq(span.context(), self.context()) {
            return self.context().bind();
        }
        Err(Failure::refused("cuMemcpyAsync", "memory of another context".into()))
    }

    /// Copy `bytes` to a span of their length; they may be reused when this returns.
    ///
    /// # Errors
    /// When the lengths differ, the memory is read-only or another context's, or what the driver says.
    pub fn write(&self, to: &Span, bytes: &[u8]) -> Result<()> {
        self.own(to)?;
        to.require(bytes.len(), true)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the span lies in a reservation of as many bytes, which waits for this queue before
        // it is freed. The source is pageable, so the driver has taken its bytes when it returns.
        check("cuMemcpyAsync", unsafe {
            sys::cuMemcpyAsync(to.address(), bytes.as_ptr() as u64, bytes.len(), self.raw())
        })
    }

    /// Copy a span to `bytes` of its length, and wait for it.
    ///
    /// # Errors
    /// As [`Queue::write`], and faults of earlier work.
    pub fn read(&self, from: &Span, bytes: &mut [u8]) -> Result<()> {
        self.own(from)?;
        from.require(bytes.len(), false)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: as in `write`; the destination is borrowed until the wait below has ended.
        let copied = check("cuMemcpyAsync", unsafe {
            sys::cuMemcpyAsync(bytes.as_mut_ptr() as u64, from.address(), bytes.len(), self.raw())
        });
        // Even a copy that was refused in part must not outlive the borrow.
        let passed = self.synchronise();
        copied.and(passed)
    }

    /// Copy between spans of one length.
    ///
    /// # Errors
    /// As [`Queue::write`].
    pub fn copy(&self, from: &Span, to: &Span) -> Result<()> {
        self.own(from)?;
        self.own(to)?;
        to.require(from.length(), true)?;
        if from.length() == 0 {
            return Ok(());
        }
        // SAFETY: both spans lie in reservations that wait for this queue before they are freed.
        check("cuMemcpyAsync", unsafe {
            sys::cuMemcpyAsync(to.address(), from.address(), from.length(), self.raw())
        })
    }

    /// Set every byte of a span.
    ///
    /// # Errors
    /// As [`Queue::write`].
    pub fn fill(&self, to: &Span, byte: u8) -> Result<()> {
        self.own(to)?;
        to.require(to.length(), true)?;
        if to.length() == 0 {
            return Ok(());
        }
        // SAFETY: as in `write`.
        check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(to.address(), byte, to.length(), self.raw())
        })
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
        // SAFETY: both handles are alive; the driver keeps what it needs of the event.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw(), event.raw(), 0) })
    }

    /// Run a kernel.
    ///
    /// # Errors
    /// When the arguments are not those that the kernel takes, or what the driver says.
    ///
    /// # Safety
    /// The addresses among the arguments must be those of memory of this context (or null where the
    /// kernel says so), of the extents that the other arguments tell, and alive until the queue has
    /// passed. Reservations of the context are.
    pub unsafe fn launch(
        &self,
        function: &Function,
        shape: &Shape,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        function.require(arguments)?;
        self.context().bind()?;
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|a| a.place().0.cast_mut()).collect();
        shape.with_config(self.raw(), |config| {
            // SAFETY: count and sizes of the arguments were compared with the kernel's own; the driver
            // copies them before it returns. What the kernel does with them is the caller's promise.
            check("cuLaunchKernelEx", unsafe {
                sys::cuLaunchKernelEx(
                    config,
                    function.raw(),
                    pointers.as_mut_ptr(),
                    ptr::null_mut(),
                )
            })
        })
    }

    /// Begin to record instead of to run. What is in flight passes first.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn begin_capture(&self) -> Result<()> {
        let mut capturing = self.handle.capturing();
        self.synchronise()?;
        // Relaxed: captures on other threads, and allocations meanwhile, are no business of this one.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the handle is alive.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(self.raw(), mode) })?;
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
        let code = unsafe { sys::cuStreamEndCapture(self.raw(), &mut graph) };
        self.leave_capture();
        bound?;
        check("cuStreamEndCapture", code)?;
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
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph.raw(), self.raw()) })
    }
}
