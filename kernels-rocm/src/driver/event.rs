//! Points in a queue.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::bindings::{hipErrorNotReady, hipEvent_t, hipEventDisableTiming};
use super::{Context, Queue, Result};

/// A point in a queue, with its time.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: hipEvent_t,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks what its calls share.
unsafe impl Sync for Event {}

impl Event {
    /// An event that has not been recorded.
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
        Event::with(context, hipEventDisableTiming)
    }

    fn with(context: &Arc<Context>, flags: u32) -> Result<Event> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle, destroyed when this is dropped.
        let code = unsafe { (context.hip().hipEventCreateWithFlags)(&mut raw, flags) };
        context.check("hipEventCreateWithFlags", code)?;
        Ok(Event { context: context.clone(), raw })
    }

    /// Put it behind what the queue holds now.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn record(&self, queue: &Queue) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both handles are alive.
        let code = unsafe { (self.context.hip().hipEventRecord)(self.raw, queue.raw()) };
        self.context.check("hipEventRecord", code)
    }

    /// Whether it has passed. Never blocks.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn passed(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        match unsafe { (self.context.hip().hipEventQuery)(self.raw) } {
            hipErrorNotReady => Ok(false),
            code => self.context.check("hipEventQuery", code).map(|()| true),
        }
    }

    /// Wait for it.
    ///
    /// # Errors
    /// What the driver says, a fault of earlier work included.
    pub fn wait(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        let code = unsafe { (self.context.hip().hipEventSynchronize)(self.raw) };
        self.context.check("hipEventSynchronize", code)
    }

    /// Device time since `earlier`, both passed.
    ///
    /// # Errors
    /// When either has not passed.
    pub fn since(&self, earlier: &Event) -> Result<Duration> {
        self.context.bind()?;
        let mut milliseconds = 0.0f32;
        let elapsed = self.context.hip().hipEventElapsedTime;
        // SAFETY: both handles are alive; writes one number.
        let code = unsafe { elapsed(&mut milliseconds, earlier.raw, self.raw) };
        self.context.check("hipEventElapsedTime", code)?;
        // Within the resolution of the clock two points may come out in the other order.
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0))
    }

    pub(super) fn raw(&self) -> hipEvent_t {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the handle is ours; one that is still pending is destroyed once it has passed.
            let _at_the_end = unsafe { (self.context.hip().hipEventDestroy)(self.raw) };
        }
    }
}
