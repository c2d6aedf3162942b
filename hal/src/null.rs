//! The accounting device: allocates nothing, launches nothing, counts everything. `plan` runs the
//! engine on it, fed by a backend's driver-free table.

use crate::{
    Alloc, Candidate, Checked, Class, Cost, Device, DeviceInfo, Enc, Error, Facts, Graph, Kernel,
    Layout, Ledger, LedgerLine, Needs, Op, Operator, Place, Result, Stream, Sym, Ticket, View,
    Want, dispatch, rates::is_narrow,
};
use std::{
    any::Any,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// What a backend knows without its driver: rows, needs and layouts of a board.
pub trait Table: Send + Sync + 'static {
    /// As [`Device::candidates`].
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate>;
    /// As [`Device::layout`].
    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64);
}

/// Work seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Launches.
    pub launches: u64,
    /// Launches of operators for which the table names no row: their needs are unknown.
    pub unknown: u64,
    /// Rows, [`Sym::Tokens`], of those launches.
    pub rows: u64,
    /// Sum of the operators' costs.
    pub cost: Cost,
    /// Operations among them that multiply FP8 or FP4 codes.
    pub narrow_flops: f64,
}

impl Counted {
    fn add(&mut self, more: &Counted) {
        self.launches += more.launches;
        self.unknown += more.unknown;
        self.rows += more.rows;
        self.cost.flops += more.cost.flops;
        self.cost.read_bytes += more.cost.read_bytes;
        self.cost.written_bytes += more.cost.written_bytes;
        self.narrow_flops += more.narrow_flops;
    }
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counted) -> Counted {
        Counted {
            launches: self.launches - earlier.launches,
            unknown: self.unknown - earlier.unknown,
            rows: self.rows - earlier.rows,
            cost: Cost {
                flops: self.cost.flops - earlier.cost.flops,
                read_bytes: self.cost.read_bytes - earlier.cost.read_bytes,
                written_bytes: self.cost.written_bytes - earlier.cost.written_bytes,
            },
            narrow_flops: self.narrow_flops - earlier.narrow_flops,
        }
    }
}

/// Work by operator.
type Tally = Arc<Mutex<BTreeMap<&'static str, Counted>>>;

/// The device. Cloning shares counts and ledger.
#[derive(Clone)]
pub struct Null {
    info: DeviceInfo,
    table: Option<Arc<dyn Table>>,
    ledger: Ledger,
    tally: Tally,
}

static NEXT: AtomicU64 = AtomicU64::new(1 << 62);

struct Entry {
    id: u64,
    ledger: Ledger,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.strike(self.id);
    }
}

impl Null {
    /// With a backend's table, or without one: every operator is then taken, its needs unknown.
    pub fn new(info: DeviceInfo, table: Option<Arc<dyn Table>>) -> Null {
        Null { info, table, ledger: Ledger::default(), tally: Arc::default() }
    }
    /// Work seen so far.
    pub fn counted(&self) -> Counted {
        let mut all = Counted::default();
        self.counted_by_operator().values().for_each(|counted| all.add(counted));
        all
    }
    /// The same by the operator's `family.name`. A fused operator without a row counts as its
    /// steps.
    pub fn counted_by_operator(&self) -> BTreeMap<&'static str, Counted> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Device for Null {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn allocate(&self, bytes: u64, place: Place, purpose: &str) -> Result<Arc<Alloc>> {
        let id = NEXT.fetch_add(1, Relaxed);
        let line = LedgerLine { purpose: purpose.into(), place, bytes };
        self.ledger.enter(id, line, self.info.memory_bytes)?;
        let inner = Box::new(Entry { id, ledger: self.ledger.clone() });
        let (device, purpose) = (self.info.id, purpose.into());
        Ok(Arc::new(Alloc { id, device, place, bytes, purpose, inner }))
    }
    fn stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(NullStream))
    }
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        self.table.as_ref().map_or_else(Vec::new, |t| t.candidates(op, want))
    }
    fn prepare(&self, op: &Op, want: &Want) -> Result<Arc<dyn Kernel>> {
        let kernel = |known, needs| {
            Arc::new(NullKernel { known, needs, tally: self.tally.clone() }) as Arc<dyn Kernel>
        };
        if self.table.is_none() {
            return Ok(kernel(None, Needs::default()));
        }
        let candidates = self.candidates(op, want).into_iter();
        let accepted: Vec<_> =
            candidates.filter_map(|c| Some((c.kernel, c.bits, c.verdict.ok()?))).collect();
        let reason = || Error::Unsupported { op: op.id().into(), reason: "no row".into() };
        let (name, bits, _) = *accepted.first().ok_or_else(reason)?;
        // A ladder is of rows with equal bits, and any of them may run.
        let ladder = accepted.iter().filter(|(_, b, _)| *b == bits);
        let workspace_bytes = ladder.map(|(.., needs)| needs.workspace_bytes).max().unwrap_or(0);
        Ok(kernel(Some((name, bits)), Needs { workspace_bytes }))
    }
    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        match &self.table {
            Some(table) => table.layout(class, enc, shape),
            None => (Layout::Plain, View::reserved_bytes(enc, shape)),
        }
    }
    fn pack(&self, _from: &View, _to: &View, _on: &dyn Stream) -> Result<()> {
        Ok(())
    }
    fn unpack(&self, _from: &View, _to: &View, _on: &dyn Stream) -> Result<()> {
        Ok(())
    }
    fn ledger(&self) -> Vec<LedgerLine> {
        self.ledger.lines()
    }
}

struct NullKernel {
    /// Name and bits, when a table names the row.
    known: Option<(&'static str, &'static str)>,
    needs: Needs,
    tally: Tally,
}

impl Kernel for NullKernel {
    fn name(&self, _tokens: u64) -> &'static str {
        self.known.map_or("unknown", |k| k.0)
    }
    fn bits(&self) -> &'static str {
        self.known.map_or("unknown", |k| k.1)
    }
    fn needs(&self) -> Needs {
        self.needs
    }
    fn launch(&self, io: &Checked<'_>, _on: &dyn Stream) -> Result<()> {
        let cost: Cost = dispatch!(io.op(), d => d.cost(io.extents()));
        let narrow = dispatch!(io.op(), d => is_narrow(&Facts::of(d)));
        let launch = Counted {
            launches: 1,
            unknown: u64::from(self.known.is_none()),
            rows: io.extents().at(Sym::Tokens),
            cost,
            narrow_flops: if narrow { cost.flops } else { 0.0 },
        };
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.entry(io.op().id()).or_default().add(&launch);
        Ok(())
    }
}

/// Accepts everything; reads give zeros.
struct NullStream;
struct NullGraph;
struct NullTicket(usize);

impl Graph for NullGraph {
    fn nodes(&self) -> usize {
        0
    }
}

impl Ticket for NullTicket {
    fn ready(&self) -> Result<bool> {
        Ok(true)
    }
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        Ok(vec![0; self.0])
    }
    fn since(&self, earlier: &dyn Ticket) -> Result<Duration> {
        let foreign = Error::ForeignObject { what: "ticket" };
        (earlier as &dyn Any).downcast_ref::<NullTicket>().map(|_| Duration::ZERO).ok_or(foreign)
    }
}

impl Stream for NullStream {
    fn write(&self, _to: &View, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    fn read(&self, from: &View) -> Result<Vec<u8>> {
        Ok(vec![0; from.bytes() as usize])
    }
    fn read_later(&self, from: &View) -> Result<Box<dyn Ticket>> {
        Ok(Box::new(NullTicket(from.bytes() as usize)))
    }
    fn mark(&self) -> Result<Box<dyn Ticket>> {
        Ok(Box::new(NullTicket(0)))
    }
    fn fill(&self, _to: &View, _byte: u8) -> Result<()> {
        Ok(())
    }
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Graph>> {
        body()?;
        Ok(Box::new(NullGraph))
    }
    fn replay(&self, _graph: &dyn Graph) -> Result<()> {
        Ok(())
    }
    fn wait(&self, _other: &dyn Stream) -> Result<()> {
        Ok(())
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
