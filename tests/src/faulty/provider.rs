//! The reference with a fault, as a backend.

use super::{
    fault::{Fault, Plant},
    launch::Launch,
    wrapper::Wrapped,
};
use std::sync::Arc;
use tandem_hal::{Device, DeviceInfo, Options, Provider, Result, null::Null};
use tandem_reference::{Around, RefProvider, Setup, Weights};

/// Opens reference devices with one fault.
pub struct Faulty {
    fault: Fault,
    inner: RefProvider,
}

impl Faulty {
    /// With this fault.
    pub fn new(fault: Fault) -> Faulty {
        let around = match fault.plant {
            Plant::Wrap(_) => None,
            Plant::Around(advice) => {
                let planted: Arc<Around> = Arc::new(move |op, slots, scratch, beyond, run| {
                    if op.id() == fault.op {
                        advice(&mut Launch { op, slots, scratch, beyond, arithmetic: run })
                    } else {
                        run(slots)
                    }
                });
                Some(planted)
            }
        };
        // Advice reads operands as the page has them; packing has faults of its own.
        let weights = if around.is_some() { Weights::Plain } else { Weights::Scrambled };
        let setup = Setup { around, weights, scratch_bytes: 64, ..Setup::default() };
        Faulty { fault, inner: RefProvider { setup } }
    }
}

impl Provider for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        self.inner.devices()
    }
    fn open(&self, ordinals: &[u32], options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        let devices = self.inner.open(ordinals, options)?;
        let Plant::Wrap(how) = self.fault.plant else { return Ok(devices) };
        let wrap = |inner| Arc::new(Wrapped { inner, op: self.fault.op, how }) as Arc<dyn Device>;
        Ok(devices.into_iter().map(wrap).collect())
    }
    fn pretend(&self, board: &str) -> Result<Null> {
        self.inner.pretend(board)
    }
}
