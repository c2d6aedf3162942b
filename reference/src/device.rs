//! The reference as a device like any other.

use crate::{
    Card, Compute, Context, Group, Weights,
    launch::{Around, Chosen, Run, launch},
    layout,
    memory::Memory,
    stream::{Node, RefStream},
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tandem_hal::{
    Alloc, Candidate, Capabilities, Checked, Class, Device, DeviceId, DeviceInfo, Dialect, Enc,
    Error, Judge, Kernel, Layout, Ledger, LedgerLine, Needs, Op, Options, Place, Result, STEPS,
    Stream, View, Want, dispatch,
};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// How a reference device is made; tests change these.
#[derive(Clone)]
pub struct Setup {
    /// Row overrides.
    pub options: Options,
    /// How weights are kept.
    pub weights: Weights,
    /// Whether fused operators are refused, so that their decompositions run.
    pub primitives_only: bool,
    /// Threads of the blocked rows; `None` for as many as the host has cores.
    pub threads: Option<usize>,
    /// Memory in bytes; `None` for the host's.
    pub memory_bytes: Option<u64>,
    /// Scratch that every launch asks for, for faults that read it.
    pub scratch_bytes: u64,
    /// How long ranks wait for each other.
    pub patience: Duration,
    /// Advice around every launch: planted faults, variants, traces.
    pub around: Option<Arc<Around>>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            options: Options::default(),
            weights: Weights::default(),
            primitives_only: false,
            threads: None,
            memory_bytes: None,
            scratch_bytes: 0,
            patience: Duration::from_secs(60),
            around: None,
        }
    }
}

/// One rank of the reference.
pub struct RefDevice {
    shared: Arc<Shared>,
}

/// What kernels, streams and graphs of a device share.
pub(crate) struct Shared {
    pub(crate) info: DeviceInfo,
    setup: Setup,
    group: Group,
    ledger: Ledger,
    pool: Option<rayon::ThreadPool>,
    /// The operator under which the device was lost.
    lost: OnceLock<String>,
}

impl RefDevice {
    /// One device with the default setup.
    pub fn new() -> RefDevice {
        RefDevice::with(&Setup::default())
    }

    /// One device.
    pub fn with(setup: &Setup) -> RefDevice {
        let mut group = RefDevice::group(1, setup);
        group.pop().expect("a group of one has a device")
    }

    /// The ranks of one group; each is used from its own thread.
    pub fn group(ranks: u32, setup: &Setup) -> Vec<RefDevice> {
        Group::of(ranks, setup.patience)
            .into_iter()
            .map(|group| RefDevice { shared: Arc::new(Shared::new(group, setup.clone())) })
            .collect()
    }
}

impl Default for RefDevice {
    fn default() -> Self {
        RefDevice::new()
    }
}

/// Facts of a reference device.
pub(crate) fn info(rank: u32, ranks: u32, memory_bytes: u64) -> DeviceInfo {
    let name = if ranks == 1 { "reference".into() } else { format!("reference:{rank}") };
    DeviceInfo {
        id: DeviceId(NEXT.fetch_add(1, Relaxed)),
        name,
        board: "reference".into(),
        arch: "host".into(),
        memory_bytes,
        capabilities: Capabilities {
            dialect: Dialect::Fn,
            fp4_units: false,
            shared_memory_bytes: 0,
            lanes: 1,
        },
        rank,
        ranks,
    }
}

/// Memory of the host as the kernel reports it; 16 GiB where it does not.
pub(crate) fn host_memory_bytes() -> u64 {
    let kib = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.map_or(16 << 30, |kib| kib << 10)
}

impl Shared {
    fn new(group: Group, setup: Setup) -> Shared {
        let memory_bytes = setup.memory_bytes.unwrap_or_else(host_memory_bytes);
        let pool = setup.threads.map(|threads| {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
            builder.build().expect("the host starts the threads it was asked for")
        });
        let info = info(group.rank(), group.ranks(), memory_bytes);
        let (ledger, lost) = (Ledger::default(), OnceLock::new());
        Shared { info, setup, group, ledger, pool, lost }
    }

    /// Whether the device still works.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] for ever after a fault.
    pub(crate) fn alive(&self) -> Result<()> {
        self.lost
            .get()
            .map_or(Ok(()), |last_op| Err(Error::DeviceLost { last_op: last_op.clone() }))
    }

    /// Run one launch now.
    pub(crate) fn run(&self, node: &Node) -> Result<()> {
        self.alive()?;
        let context = Context { group: &self.group };
        let views: Vec<&View> = node.views.iter().collect();
        let around = self.setup.around.as_deref();
        let go = || launch(&*node.run, node.rows, &views, &node.workspace, &context, around);
        let result = self.pool.as_ref().map_or_else(go, |pool| pool.install(go));
        if let Err(Error::DeviceLost { .. }) = result {
            // A second fault keeps the first suspect.
            let _first_wins = self.lost.set(node.run.op().line());
            return self.alive();
        }
        result
    }

    fn forced(&self, op: &str) -> Option<&str> {
        self.setup.options.forced(op)
    }
}

impl Device for RefDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        self.shared.alive()?;
        if place == Place::Mapped {
            let reason = "this device reads files by position".into();
            return Err(Error::Unsupported { op: "map".into(), reason });
        }
        let (info, ledger) = (&self.shared.info, &self.shared.ledger);
        Memory::reserve(info.id, ledger, info.memory_bytes, bytes, place, purpose)
    }

    fn stream(&self) -> Result<Box<dyn Stream>> {
        self.shared.alive()?;
        Ok(Box::new(RefStream::new(self.shared.clone())))
    }

    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        let forced = self.shared.forced(op.id());
        let mut list = dispatch!(op, d => list_of(d, &self.shared.info, want, forced));
        if self.refuses(op) {
            for candidate in &mut list {
                candidate.verdict = Err("this device runs primitives only".into());
            }
        }
        list
    }

    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        self.shared.alive()?;
        if self.refuses(op) {
            let reason = "this device runs primitives only".into();
            return Err(Error::Unsupported { op: op.id().into(), reason });
        }
        let forced = self.shared.forced(op.id());
        let run = dispatch!(op, d => chosen(d, &self.shared.info, want, forced))?;
        Ok(Arc::new(RefKernel { run, device: self.shared.clone() }))
    }

    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        self.shared.setup.weights.layout(class, enc, shape)
    }

    fn pack(&self, from: &View, to: &View, _on: &dyn Stream) -> Result<()> {
        self.shared.alive()?;
        layout::pack(from, to)
    }

    fn unpack(&self, from: &View, to: &View, _on: &dyn Stream) -> Result<()> {
        self.shared.alive()?;
        layout::unpack(from, to)
    }

    fn ledger(&self) -> Vec<LedgerLine> {
        self.shared.ledger.lines()
    }
}

impl RefDevice {
    fn refuses(&self, op: &Op) -> bool {
        self.shared.setup.primitives_only && dispatch!(op, d => tandem_hal::is_fused(d))
    }
}

/// What the rows of a host are judged by: every one is proven where it runs, since conformance is
/// part of the build, and all have the same bits, fused or not.
fn judge<'a, D: Card>(
    info: &'a DeviceInfo,
    want: &'a Want,
    forced: Option<&'a str>,
) -> Judge<'a, D, Compute<D>> {
    Judge { info, want, forced, proven: &|_| Ok(()), step_bits: &|_| Some(STEPS) }
}

fn list_of<D: Card>(d: &D, info: &DeviceInfo, want: &Want, forced: Option<&str>) -> Vec<Candidate> {
    judge(info, want, forced).candidates(D::rows(), d)
}

fn chosen<D: Card>(
    d: &D,
    info: &DeviceInfo,
    want: &Want,
    forced: Option<&str>,
) -> Result<Arc<dyn Run>> {
    let ladder = judge(info, want, forced).choose(D::rows(), d)?;
    Ok(Arc::new(Chosen::new(d, ladder)))
}

/// The candidates of a host, for a device that is not opened.
pub(crate) fn table_of(op: &Op, info: &DeviceInfo, want: &Want) -> Vec<Candidate> {
    dispatch!(op, d => list_of(d, info, want, None))
}

struct RefKernel {
    run: Arc<dyn Run>,
    device: Arc<Shared>,
}

impl Kernel for RefKernel {
    fn name(&self, tokens: u64) -> &'static str {
        self.run.name(tokens)
    }
    fn bits(&self) -> &'static str {
        self.run.bits()
    }
    fn needs(&self) -> Needs {
        Needs { workspace_bytes: self.device.setup.scratch_bytes }
    }
    fn launch(&self, io: &Checked<'_>, on: &dyn Stream) -> Result<()> {
        let stream = RefStream::of(on, &self.device)?;
        stream.launch(Node {
            run: self.run.clone(),
            rows: io.extents().at(self.run.facts().rows),
            views: io.views().iter().map(|v| (*v).clone()).collect(),
            workspace: io.workspace().clone(),
        })
    }
}
