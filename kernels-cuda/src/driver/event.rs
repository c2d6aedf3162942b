//! Points in a queue.

use super::{Context, Queue, Result, failure::check};
use cudarc::driver::sys::{self, CUevent, CUresult};
use std::{ptr, sync::Arc, time::Duration};

/// Keeps no time (`CU_EVENT_DISABLE_TIMING`).
const UNTIMED: u32 = 2;

/// A point in a queue, with its time.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks what its calls share.
unsafe impl Sync for Event {}

impl Event {
    /// An event that has not been recorded, which counts as passed.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(context: &Arc<Context>) -> Result<Event> {
        Event::with(context, 0)
    }

    /// The same without a time, for queues that wait.
    ///
    /// # Errors
    /// What the driver says.
    pub fn untimed(context: &Arc<Context>) -> Result<Event> {
        Event::with(context, UNTIMED)
    }

    fn with(context: &Arc<Context>, flags: u32) -> Result<Event> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, destroyed when this is dropped.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
        Ok(Event { context: context.clone(), raw })
    }

    /// Put it behind what the queue holds now.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn record(&self, queue: &Queue) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both handles are alive.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, queue.raw()) })
    }

    /// Whether it has passed. Never blocks.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn passed(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Wait for it.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn wait(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Device time since `earlier`, both passed.
    ///
    /// # Errors
    /// When either has not passed.
    pub fn since(&self, earlier: &Event) -> Result<Duration> {
        self.context.bind()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: both handles are alive; writes one number.
        let code = unsafe { sys::cuEventElapsedTime_v2(&mut milliseconds, earlier.raw, self.raw) };
        check("cuEventElapsedTime", code)?;
        // Within the resolution of the clock two points may come out in the other order.
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0))
    }

    pub(super) fn raw(&self) -> CUevent {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the handle is ours; one that is still pending is destroyed once it has passed.
            let _at_the_end = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
