//! Faults around a device: tables, packing, kernels.

use std::sync::Arc;
use tandem_hal::{
    Alloc, Candidate, Checked, Class, Device, DeviceInfo, Dir, Domain, Enc, Error, Facts, Kernel,
    Layout, LedgerLine, Needs, Op, Operand, Place, Result, Stream, View, Want,
};

use crate::conformance::operator;

/// What is wrong with a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrap {
    /// A kernel writes to its first input.
    InputOverwritten,
    /// A plan for many rows computes other bits.
    LimitDependent,
    /// A captured launch keeps the lengths of its capture.
    LengthsBaked,
    /// A refused row has no reason.
    ReasonMissing,
    /// Packing drops the sign of zero codes.
    PackLosesSign,
    /// A kernel runs although the stream is another device's.
    AlienStreamTaken,
}

/// A device with a fault in one operator.
pub struct Wrapped {
    /// The device.
    pub inner: Arc<dyn Device>,
    /// The operator.
    pub op: &'static str,
    /// The fault.
    pub how: Wrap,
}

impl Device for Wrapped {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }
    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        self.inner.allocate(bytes, place, purpose)
    }
    fn stream(&self) -> Result<Box<dyn Stream>> {
        self.inner.stream()
    }
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        let mut list = self.inner.candidates(op, want);
        if self.how == Wrap::ReasonMissing && op.id() == self.op {
            let last = list.last().cloned();
            list.extend(last.map(|c| Candidate {
                kernel: "unexplained",
                verdict: Err(String::new()),
                ..c
            }));
        }
        list
    }
    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        let kernel = self.inner.prepare(op, want)?;
        if op.id() != self.op {
            return Ok(kernel);
        }
        let many = want.limits.at(operator::facts(op).rows) > 512;
        let (how, device) = (self.how, self.inner.clone());
        Ok(Arc::new(WrappedKernel { kernel, how, device, many }))
    }
    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        self.inner.layout(class, enc, shape)
    }
    fn pack(&self, from: &View, to: &View, on: &dyn Stream) -> Result<()> {
        if self.how != Wrap::PackLosesSign {
            return self.inner.pack(from, to, on);
        }
        let mut bytes = on.read(from)?;
        for code in bytes.iter_mut().filter(|code| **code == 0x80) {
            *code = 0;
        }
        let memory = self.inner.allocate(
            View::reserved_bytes(from.enc(), from.shape()),
            Place::Device,
            "copy",
        )?;
        let copy = View::dense(&memory, 0, from.enc(), from.shape())?;
        on.write(&copy, &bytes)?;
        self.inner.pack(&copy, to, on)
    }
    fn unpack(&self, from: &View, to: &View, on: &dyn Stream) -> Result<()> {
        self.inner.unpack(from, to, on)
    }
    fn ledger(&self) -> Vec<LedgerLine> {
        self.inner.ledger()
    }
}

struct WrappedKernel {
    kernel: Arc<dyn Kernel>,
    how: Wrap,
    device: Arc<dyn Device>,
    many: bool,
}

/// Invert the lowest bit of a view's first byte, where a launch of this kind may: not inside a
/// capture, and not where rows are apart.
fn spoil(view: Option<&View>, on: &dyn Stream) -> Result<()> {
    let Some(view) = view.filter(|v| !v.is_empty() && v.is_dense()) else { return Ok(()) };
    match on.read(view) {
        Err(Error::NotWhileCapturing { .. }) => Ok(()),
        bytes => {
            let mut bytes = bytes?;
            bytes[0] ^= 1;
            on.write(view, &bytes)
        }
    }
}

impl Kernel for WrappedKernel {
    fn name(&self, tokens: u64) -> &'static str {
        self.kernel.name(tokens)
    }
    fn bits(&self) -> &str {
        self.kernel.bits()
    }
    fn needs(&self) -> Needs {
        self.kernel.needs()
    }
    fn launch(&self, io: &Checked<'_>, on: &dyn Stream) -> Result<()> {
        let facts = operator::facts(io.op());
        if self.how == Wrap::LengthsBaked {
            return self.baked(io, on, &facts);
        }
        let find = |input: bool| {
            let mut pairs = io.views().iter().zip(&facts.operands);
            pairs.find(|(_, (_, dir, _))| (*dir == Dir::In) == input).map(|(view, _)| *view)
        };
        match (self.how, self.kernel.launch(io, on)) {
            (Wrap::AlienStreamTaken, Err(Error::ForeignObject { .. })) => {
                self.kernel.launch(io, &*self.device.stream()?)
            }
            (Wrap::InputOverwritten, Ok(())) => spoil(find(true), on),
            (Wrap::LimitDependent, Ok(())) if self.many => spoil(find(false), on),
            (_, result) => result,
        }
    }
}

impl WrappedKernel {
    /// Inside a capture, launch on a copy of the lengths as they stand.
    fn baked(&self, io: &Checked<'_>, on: &dyn Stream, facts: &Facts) -> Result<()> {
        let counts = |(_, _, spec): &(&str, Dir, Operand)| matches!(spec.domain, Domain::Count(_));
        let place = facts.operands.iter().position(counts);
        let Some(place) = place.filter(|i| io.views()[*i].is_dense()) else {
            return self.kernel.launch(io, on);
        };
        let view = io.views()[place];
        if !matches!(on.read(view), Err(Error::NotWhileCapturing { .. })) {
            return self.kernel.launch(io, on);
        }
        let aside = self.device.stream()?;
        let bytes = View::reserved_bytes(view.enc(), view.shape());
        let memory = self.device.allocate(bytes, Place::Device, "baked")?;
        let copy = View::dense(&memory, 0, view.enc(), view.shape())?;
        aside.write(&copy, &aside.read(view)?)?;
        io.with(place, &copy, |io| self.kernel.launch(io, on))
    }
}
