//! The reference's device with this backend's table and kernels.

use super::host;
use crate::rows::{self, Rows};
use std::{fs::File, sync::Arc};
use tandem_hal::{
    Alloc, Candidate, Checked, Class, Device, DeviceInfo, Enc, Kernel, Layout, LedgerLine, Needs,
    Op, Options, Place, Result, Stream, View, Want, dispatch,
};
use tandem_reference::{RefDevice, Setup, Weights};

/// One rank.
pub(super) struct EmuDevice {
    inner: RefDevice,
    info: DeviceInfo,
    options: Options,
}

/// Facts of an emulated device that stands in for `inner`.
pub(super) fn info_of(inner: &DeviceInfo) -> DeviceInfo {
    DeviceInfo {
        name: inner.name.replace("reference", "cuda-emu"),
        board: "emulated".into(),
        arch: rows::ALL[0].into(),
        ..inner.clone()
    }
}

impl EmuDevice {
    /// The ranks of a group.
    pub(super) fn group(ranks: u32, options: &Options) -> Vec<EmuDevice> {
        let facts = info_of(RefDevice::new().info());
        let given = options.clone();
        let setup = Setup {
            weights: Weights::Plain,
            around: Some(Arc::new(move |op, slots, workspace, _, reference| {
                let on = (&facts, &given);
                dispatch!(op, d => host::run(d, slots, on, workspace, reference))
            })),
            ..Setup::default()
        };
        let device = |inner: RefDevice| {
            let (info, options) = (info_of(inner.info()), options.clone());
            EmuDevice { inner, info, options }
        };
        RefDevice::group(ranks, &setup).into_iter().map(device).collect()
    }
}

impl Device for EmuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        self.inner.allocate(bytes, place, purpose)
    }
    fn map(&self, file: &File, offset: u64, bytes: u64, purpose: &str) -> Result<Arc<Alloc>> {
        self.inner.map(file, offset, bytes, purpose)
    }
    fn stream(&self) -> Result<Box<dyn Stream>> {
        self.inner.stream()
    }
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        rows::table(op, &self.info, want, &self.options)
    }
    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        fn chosen<D: Rows>(
            d: &D,
            device: &EmuDevice,
            want: &Want,
            inner: Arc<dyn Kernel>,
        ) -> Result<Arc<dyn Kernel>> {
            let ladder = rows::choose(d, &device.info, want, &device.options)?;
            let (bits, needs) = (ladder.bits(), ladder.needs);
            let name = move |rows| ladder.at(rows).map_or("none", |row| row.name);
            Ok(Arc::new(EmuKernel { inner, bits, needs, name: Box::new(name) }))
        }
        let inner = self.inner.prepare(op, want)?;
        dispatch!(op, d => chosen(d, self, want, inner))
    }
    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        self.inner.layout(class, enc, shape)
    }
    fn pack(&self, from: &View, to: &View, on: &dyn Stream) -> Result<()> {
        self.inner.pack(from, to, on)
    }
    fn unpack(&self, from: &View, to: &View, on: &dyn Stream) -> Result<()> {
        self.inner.unpack(from, to, on)
    }
    fn ledger(&self) -> Vec<LedgerLine> {
        self.inner.ledger()
    }
}

/// A kernel of the reference whose arithmetic is replaced.
struct EmuKernel {
    inner: Arc<dyn Kernel>,
    bits: &'static str,
    needs: Needs,
    name: Box<dyn Fn(u64) -> &'static str + Send + Sync>,
}

impl Kernel for EmuKernel {
    fn name(&self, tokens: u64) -> &'static str {
        (self.name)(tokens)
    }
    fn bits(&self) -> &'static str {
        self.bits
    }
    fn needs(&self) -> Needs {
        self.needs
    }
    fn launch(&self, io: &Checked<'_>, on: &dyn Stream) -> Result<()> {
        self.inner.launch(io, on)
    }
}
