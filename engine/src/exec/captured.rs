//! Launches recorded once and replayed on the data of the moment.

use super::Graphs;
use crate::error::{Error, Result};
use tandem_hal::{Graph, Launch, Op, Stream, Tape};

/// Recorded launches, and where they leave what they compute.
pub(crate) struct Captured<T> {
    segments: Vec<Segment>,
    result: T,
}

/// Launches that stand together in a step.
enum Segment {
    /// Replayed by the device.
    Graph(Box<dyn Graph>),
    /// Queued one by one.
    Eager(Vec<Launch>),
}

impl<T> Captured<T> {
    /// Records what `body` launches, for `on`; nothing runs.
    pub(crate) fn new(
        on: &dyn Stream,
        graphs: Graphs,
        body: impl Fn(&dyn Stream) -> Result<T>,
    ) -> Result<Self> {
        match graphs {
            Graphs::Full => Self::whole(on, body),
            Graphs::Segments => {
                let tape = Tape::default();
                let result = body(&tape)?;
                Ok(Self { segments: segments(tape.into_launches(), on)?, result })
            }
        }
    }

    fn whole(on: &dyn Stream, body: impl Fn(&dyn Stream) -> Result<T>) -> Result<Self> {
        let mut made = None;
        let graph = on.capture(&mut || {
            made = Some(body(on));
            Ok(())
        });
        // What went wrong inside says more than a capture that was cut short by it.
        let result = made.transpose()?;
        let invariant = || Error::Internal { invariant: "a capture runs what it records".into() };
        let result = result.ok_or_else(invariant)?;
        Ok(Self { segments: vec![Segment::Graph(graph?)], result })
    }

    /// Queues the launches again; answers where their results will be.
    pub(crate) fn replay(&self, on: &dyn Stream) -> Result<&T> {
        for segment in &self.segments {
            match segment {
                Segment::Graph(graph) => on.replay(graph.as_ref())?,
                Segment::Eager(launches) => run(launches, on)?,
            }
        }
        Ok(&self.result)
    }

    /// Graphs, and launches between them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.segments.iter().fold((0, 0), |(graphs, eager), segment| match segment {
            Segment::Graph(_) => (graphs + 1, eager),
            Segment::Eager(launches) => (graphs, eager + launches.len()),
        })
    }
}

/// Whether a launch stays out of the graphs: those that look through the caches, whose work
/// depends on how long the contexts are.
fn stays_out(op: &Op) -> bool {
    ["index.", "attn."].iter().any(|family| op.id().starts_with(family))
}

/// Every launch once, in order.
fn segments(launches: Vec<Launch>, on: &dyn Stream) -> Result<Vec<Segment>> {
    let mut segments: Vec<(bool, Vec<Launch>)> = vec![];
    for launch in launches {
        let eager = stays_out(launch.op());
        match segments.last_mut() {
            Some((same, list)) if *same == eager => list.push(launch),
            _ => segments.push((eager, vec![launch])),
        }
    }
    let segment = |(eager, launches): (bool, Vec<Launch>)| {
        if eager {
            return Ok(Segment::Eager(launches));
        }
        Ok(Segment::Graph(
            on.capture(&mut || launches.iter().try_for_each(|launch| launch.run(on)))?,
        ))
    };
    segments.into_iter().map(segment).collect()
}

fn run(launches: &[Launch], on: &dyn Stream) -> Result<()> {
    Ok(launches.iter().try_for_each(|launch| launch.run(on))?)
}
