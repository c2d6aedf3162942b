//! A device that plans like another and reserves nothing.

use std::sync::{Arc, Mutex, PoisonError};

use tandem_hal::null::Null;
use tandem_hal::{
    Alloc, Candidate, Class, Device, DeviceInfo, Enc, Kernel, Layout, LedgerLine, Op, Place,
    Result, Stream, View, Want,
};

/// Stands in for a device while a model is made ready without its weights: shows whether it fits,
/// whether every operator has a kernel, and what it asks for.
pub(crate) struct Rehearsal {
    real: Arc<dyn Device>,
    null: Null,
    asked: Mutex<Vec<(Op, Want)>>,
}

impl Rehearsal {
    /// In place of `real`, with `memory_bytes` of memory.
    pub(crate) fn new(real: Arc<dyn Device>, memory_bytes: u64) -> Self {
        let info = DeviceInfo { memory_bytes, ..real.info().clone() };
        Self { real, null: Null::new(info, None), asked: Mutex::default() }
    }

    /// Every operator that kernels were wanted for, in order, some of them often.
    pub(crate) fn asked(&self) -> Vec<(Op, Want)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Device for Rehearsal {
    fn info(&self) -> &DeviceInfo {
        self.null.info()
    }
    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        self.null.allocate(bytes, place, purpose)
    }
    fn stream(&self) -> Result<Box<dyn Stream>> {
        self.null.stream()
    }
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        self.real.candidates(op, want)
    }
    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((op.clone(), *want));
        self.real.prepare(op, want)
    }
    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        self.real.layout(class, enc, shape)
    }
    fn pack(&self, from: &View, to: &View, on: &dyn Stream) -> Result<()> {
        self.null.pack(from, to, on)
    }
    fn unpack(&self, from: &View, to: &View, on: &dyn Stream) -> Result<()> {
        self.null.unpack(from, to, on)
    }
    fn ledger(&self) -> Vec<LedgerLine> {
        self.null.ledger()
    }
}
