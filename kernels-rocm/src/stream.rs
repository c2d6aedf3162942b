//! Streams of a device, and captures.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tandem_hal::{Checked, Error, Graph, Place, Result, Stream, Ticket, View};

use crate::driver::{Event, Queue};
use crate::graph::{Node, RocmGraph};
use crate::kernel::Run;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::ticket::{Point, RocmTicket};

/// What a stream launched last: the first suspect of a fault.
#[derive(Default)]
pub(crate) struct Trail(Mutex<Option<(usize, Arc<dyn Run>)>>);

impl Trail {
    /// The operator's line, with the size of the graph that ended with it.
    pub(crate) fn last(&self) -> Option<String> {
        let last = lock(&self.0).clone()?;
        Some(match last {
            (1, run) => run.op().line(),
            (launches, run) => format!("a graph of {launches} launches up to {}", run.op().line()),
        })
    }
    fn set(&self, launches: usize, run: &Arc<dyn Run>) {
        *lock(&self.0) = Some((launches, run.clone()));
    }
}

/// A capture in progress, shared by the stream that began it and those that forked from it.
#[derive(Default)]
struct Tape {
    nodes: Vec<Node>,
    /// Streams that forked and have not joined.
    forks: usize,
    /// Queues that forked: part of the capture until it ends, whether or not their streams live.
    members: Vec<Queue>,
}

/// A stream's part in a capture; over when the tape is gone.
#[derive(Default)]
struct Part {
    tape: Weak<Mutex<Tape>>,
    /// Whether the capture began here.
    origin: bool,
    /// Whether it forked and holds work that the origin does not wait for yet.
    open: bool,
}

/// A queue of one device.
pub(crate) struct RocmStream {
    shared: Arc<Shared>,
    queue: Queue,
    part: Mutex<Part>,
    trail: Arc<Trail>,
    /// Recorded anew whenever another stream waits for this one.
    link: Event,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Tapes, parts and trails are whole after every statement, so a poisoned lock still guards them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RocmStream {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<RocmStream> {
        let queue = shared.told(Queue::new(shared.context()))?;
        let trail = Arc::new(Trail::default());
        shared.follow(&trail);
        let (link, part) = (shared.told(Event::untimed(shared.context()))?, Mutex::default());
        Ok(RocmStream { shared: shared.clone(), queue, part, trail, link })
    }

    /// `on` as a stream of the device behind `shared`.
    ///
    /// # Errors
    /// [`Error::ForeignObject`] when it is another backend's or device's.
    pub(crate) fn of<'a>(on: &'a dyn Stream, shared: &Arc<Shared>) -> Result<&'a RocmStream> {
        let stream = (on as &dyn Any).downcast_ref::<RocmStream>();
        let ours = stream.filter(|s| Arc::ptr_eq(&s.shared, shared));
        ours.ok_or(Error::ForeignObject { what: "stream" })
    }

    fn tape(&self) -> Option<Arc<Mutex<Tape>>> {
        lock(&self.part).tape.upgrade()
    }

    /// Refuse what a capture cannot hold.
    fn eager(&self, what: &'static str) -> Result<()> {
        self.shared.alive()?;
        if self.tape().is_some() { Err(Error::NotWhileCapturing { what }) } else { Ok(()) }
    }

    /// Launch, or record.
    pub(crate) fn launch(&self, run: &Arc<dyn Run>, io: &Checked<'_>) -> Result<()> {
        self.shared.alive()?;
        if let Some(tape) = self.tape() {
            self.reopen(&tape);
            let views = io.views().iter().copied().chain([io.workspace()]).cloned();
            lock(&tape).nodes.push(Node { run: run.clone(), _views: views.collect() });
        } else {
            self.trail.set(1, run);
        }
        run.launch(&self.shared, &self.queue, io)
    }

    /// New work on a stream that had joined makes it a fork again.
    fn reopen(&self, tape: &Mutex<Tape>) {
        let mut part = lock(&self.part);
        if !part.origin && !part.open {
            part.open = true;
            lock(tape).forks += 1;
        }
    }

    /// The point behind what the queue holds now, until it is asked for again.
    fn point(&self) -> Result<&Event> {
        self.shared.told(self.link.record(&self.queue))?;
        Ok(&self.link)
    }

    /// Begin a capture here.
    fn begin(&self) -> Result<Arc<Mutex<Tape>>> {
        self.shared.told(self.queue.begin_capture())?;
        let tape = Arc::new(Mutex::new(Tape::default()));
        *lock(&self.part) = Part { tape: Arc::downgrade(&tape), origin: true, open: false };
        Ok(tape)
    }

    /// The graph of what was recorded. Whatever happened, all streams are free again when this ends.
    fn end(&self, tape: Arc<Mutex<Tape>>, result: Result<()>) -> Result<Box<dyn Graph>> {
        let Tape { nodes, forks, members } = std::mem::take(&mut *lock(&tape));
        let graph = self.queue.end_capture();
        drop(tape);
        *lock(&self.part) = Part::default();
        for queue in members {
            queue.leave_capture();
        }
        result?;
        if forks > 0 {
            return Err(Error::NotWhileCapturing { what: "a forked stream was not joined" });
        }
        let graph = self.shared.told(graph)?;
        Ok(Box::new(RocmGraph { graph, nodes, shared: self.shared.clone() }))
    }
}

fn require_writable(call: &'static str, view: &View) -> Result<()> {
    if view.alloc().place != Place::Mapped {
        return Ok(());
    }
    let why = "a mapped file is read-only".into();
    Err(Error::BadOperand { op: call, operand: "view", why })
}

impl Stream for RocmStream {
    fn write(&self, to: &View, bytes: &[u8]) -> Result<()> {
        self.eager("write")?;
        require_writable("write", to)?;
        let [codes, scales] = Memory::spans("write", to)?;
        if codes.length() + scales.length() != bytes.len() {
            let why = format!("holds {} bytes, got {}", to.bytes(), bytes.len());
            return Err(Error::BadOperand { op: "write", operand: "bytes", why });
        }
        let (first, second) = bytes.split_at(codes.length());
        for (span, bytes) in [(codes, first), (scales, second)] {
            self.shared.told(self.shared.staging().write(&self.queue, &span, bytes))?;
        }
        Ok(())
    }

    fn read(&self, from: &View) -> Result<Vec<u8>> {
        self.eager("read")?;
        let [codes, scales] = Memory::spans("read", from)?;
        let mut bytes = vec![0; codes.length() + scales.length()];
        let (first, second) = bytes.split_at_mut(codes.length());
        self.shared.told(self.queue.read(&codes, first))?;
        self.shared.passed(self.queue.read(&scales, second))?;
        Ok(bytes)
    }

    fn read_later(&self, from: &View) -> Result<Box<dyn Ticket>> {
        self.eager("read_later")?;
        let spans = Memory::spans("read_later", from)?;
        let pending = self.shared.staging().read_later(&self.queue, &spans);
        let point = Point::Read(self.shared.told(pending)?);
        Ok(Box::new(RocmTicket { shared: self.shared.clone(), point }))
    }

    fn mark(&self) -> Result<Box<dyn Ticket>> {
        self.eager("mark")?;
        let event = self.shared.told(Event::new(self.shared.context()))?;
        self.shared.told(event.record(&self.queue))?;
        let point = Point::Mark(event);
        Ok(Box::new(RocmTicket { shared: self.shared.clone(), point }))
    }

    fn fill(&self, to: &View, byte: u8) -> Result<()> {
        self.eager("fill")?;
        require_writable("fill", to)?;
        for span in Memory::spans("fill", to)? {
            self.shared.told(self.queue.fill(&span, byte))?;
        }
        Ok(())
    }

    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Graph>> {
        self.eager("capture")?;
        let tape = self.begin()?;
        let result = body();
        self.end(tape, result)
    }

    fn replay(&self, graph: &dyn Graph) -> Result<()> {
        self.eager("replay")?;
        let graph = (graph as &dyn Any).downcast_ref::<RocmGraph>();
        let ours = graph.filter(|g| Arc::ptr_eq(&g.shared, &self.shared));
        let graph = ours.ok_or(Error::ForeignObject { what: "graph" })?;
        if let Some(last) = graph.nodes.last() {
            self.trail.set(graph.nodes.len(), &last.run);
        }
        self.shared.told(graph.run_on(&self.queue))
    }

    fn wait(&self, other: &dyn Stream) -> Result<()> {
        self.shared.alive()?;
        let other = RocmStream::of(other, &self.shared)?;
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        match (self.tape(), other.tape()) {
            (None, None) => self.shared.told(self.queue.wait(other.point()?)),
            (None, Some(theirs)) => {
                self.shared.told(self.queue.join_capture(other.point()?))?;
                let mut tape = lock(&theirs);
                tape.forks += 1;
                tape.members.push(self.queue.clone());
                let tape = Arc::downgrade(&theirs);
                *lock(&self.part) = Part { tape, origin: false, open: true };
                Ok(())
            }
            (Some(ours), Some(theirs)) if Arc::ptr_eq(&ours, &theirs) => {
                self.reopen(&ours);
                self.shared.told(self.queue.wait(other.point()?))?;
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
        self.eager("sync")?;
        self.shared.passed(self.queue.synchronise())
    }
}
