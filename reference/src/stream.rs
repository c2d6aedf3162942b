//! Queues of the reference device: work runs at once, or is recorded.

use crate::{
    device::Shared,
    launch::Run,
    layout,
    memory::{Memory, require_dense},
};
use std::{
    any::Any,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};
use tandem_hal::{Error, Graph, Result, Stream, Ticket, View};

/// One launch, kept with its memory.
pub(crate) struct Node {
    pub(crate) run: Arc<dyn Run>,
    /// Rows of data.
    pub(crate) rows: u64,
    pub(crate) views: Vec<View>,
    pub(crate) workspace: View,
}

/// A capture in progress, shared by the capturing stream and those that forked from it.
#[derive(Default)]
struct Tape {
    nodes: Vec<Node>,
    /// Streams that forked and have not joined.
    forks: usize,
}

type SharedTape = Mutex<Tape>;

/// A stream's part in a capture; over when the tape is gone.
#[derive(Default)]
struct Part {
    tape: Weak<SharedTape>,
    /// Whether the capture began here.
    origin: bool,
    /// Whether it forked and holds work that the origin does not wait for yet.
    open: bool,
}

/// A queue.
pub(crate) struct RefStream {
    device: Arc<Shared>,
    part: Mutex<Part>,
}

struct RefGraph {
    device: Arc<Shared>,
    nodes: Vec<Node>,
}

impl Graph for RefGraph {
    fn nodes(&self) -> usize {
        self.nodes.len()
    }
}

/// A point that has passed: queues run at once.
struct RefTicket {
    bytes: Vec<u8>,
    at: Instant,
}

impl Ticket for RefTicket {
    fn ready(&self) -> Result<bool> {
        Ok(true)
    }
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        Ok(self.bytes)
    }
    fn since(&self, earlier: &dyn Ticket) -> Result<Duration> {
        let foreign = Error::ForeignObject { what: "ticket" };
        let earlier = (earlier as &dyn Any).downcast_ref::<RefTicket>().ok_or(foreign)?;
        Ok(self.at.saturating_duration_since(earlier.at))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Tapes and links are whole after every statement, so a poisoned lock still guards them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RefStream {
    pub(crate) fn new(device: Arc<Shared>) -> RefStream {
        RefStream { device, part: Mutex::default() }
    }

    /// `on` as a stream of `device`.
    ///
    /// # Errors
    /// [`Error::ForeignObject`] when it is another backend's or device's.
    pub(crate) fn of<'a>(on: &'a dyn Stream, device: &Arc<Shared>) -> Result<&'a RefStream> {
        let stream = (on as &dyn Any).downcast_ref::<RefStream>();
        let ours = stream.filter(|s| Arc::ptr_eq(&s.device, device));
        ours.ok_or(Error::ForeignObject { what: "stream" })
    }

    fn tape(&self) -> Option<Arc<SharedTape>> {
        lock(&self.part).tape.upgrade()
    }

    /// Refuse what a capture cannot hold.
    fn eager(&self, what: &'static str) -> Result<()> {
        self.device.alive()?;
        if self.tape().is_some() { Err(Error::NotWhileCapturing { what }) } else { Ok(()) }
    }

    /// Run or record.
    pub(crate) fn launch(&self, node: Node) -> Result<()> {
        match self.tape() {
            Some(tape) => {
                self.device.alive()?;
                self.reopen(&tape);
                lock(&tape).nodes.push(node);
                Ok(())
            }
            None => self.device.run(&node),
        }
    }

    /// New work on a stream that had joined makes it a fork again.
    fn reopen(&self, tape: &SharedTape) {
        let mut part = lock(&self.part);
        if !part.origin && !part.open {
            part.open = true;
            lock(tape).forks += 1;
        }
    }

    fn check_length(call: &'static str, view: &View, length: usize) -> Result<()> {
        require_dense(call, view)?;
        if view.bytes() == length as u64 {
            return Ok(());
        }
        let why = format!("holds {} bytes, got {length}", view.bytes());
        Err(Error::BadOperand { op: call, operand: "bytes", why })
    }
}

impl Stream for RefStream {
    fn write(&self, to: &View, bytes: &[u8]) -> Result<()> {
        self.eager("write")?;
        Self::check_length("write", to, bytes.len())?;
        layout::write(to, bytes)
    }

    fn read(&self, from: &View) -> Result<Vec<u8>> {
        self.eager("read")?;
        require_dense("read", from)?;
        layout::read(from)
    }

    fn read_later(&self, from: &View) -> Result<Box<dyn Ticket>> {
        let bytes = self.read(from)?;
        Ok(Box::new(RefTicket { bytes, at: Instant::now() }))
    }

    fn mark(&self) -> Result<Box<dyn Ticket>> {
        self.eager("mark")?;
        Ok(Box::new(RefTicket { bytes: vec![], at: Instant::now() }))
    }

    fn fill(&self, to: &View, byte: u8) -> Result<()> {
        self.eager("fill")?;
        require_dense("fill", to)?;
        let mut memory = Memory::of(to)?.write();
        for span in to.spans() {
            memory.bytes()[span.start as usize..span.end as usize].fill(byte);
        }
        Ok(())
    }

    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Graph>> {
        self.eager("capture")?;
        let tape = Arc::new(Mutex::new(Tape::default()));
        *lock(&self.part) = Part { tape: Arc::downgrade(&tape), origin: true, open: false };
        let result = body();
        // Forked streams hold weak links: whatever happened, they are free again when this ends.
        let finished = std::mem::take(&mut *lock(&tape));
        drop(tape);
        *lock(&self.part) = Part::default();
        result?;
        if finished.forks > 0 {
            return Err(Error::NotWhileCapturing { what: "a forked stream was not joined" });
        }
        Ok(Box::new(RefGraph { device: self.device.clone(), nodes: finished.nodes }))
    }

    fn replay(&self, graph: &dyn Graph) -> Result<()> {
        self.eager("replay")?;
        let graph = (graph as &dyn Any).downcast_ref::<RefGraph>();
        let ours = graph.filter(|g| Arc::ptr_eq(&g.device, &self.device));
        let graph = ours.ok_or(Error::ForeignObject { what: "graph" })?;
        graph.nodes.iter().try_for_each(|node| self.device.run(node))
    }

    fn wait(&self, other: &dyn Stream) -> Result<()> {
        self.device.alive()?;
        let other = RefStream::of(other, &self.device)?;
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        match (self.tape(), other.tape()) {
            (None, None) => Ok(()),
            (None, Some(theirs)) => {
                lock(&theirs).forks += 1;
                let tape = Arc::downgrade(&theirs);
                *lock(&self.part) = Part { tape, origin: false, open: true };
                Ok(())
            }
            (Some(ours), Some(theirs)) if Arc::ptr_eq(&ours, &theirs) => {
                self.reopen(&ours);
                let mut joined = lock(&other.part);
                if joined.open {
                    joined.open = false;
                    lock(&ours).forks -= 1;
                }
                Ok(())
            }
            (Some(_), _) => {
                let what = "waiting on a stream outside the capture";
                Err(Error::NotWhileCapturing { what })
            }
        }
    }

    fn sync(&self) -> Result<()> {
        self.eager("sync")
    }
}
