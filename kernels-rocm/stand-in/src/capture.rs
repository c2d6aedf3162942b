//! Captures, and the graphs that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::ThreadId;

use crate::bindings::*;
use crate::code::{Code, Result};
use crate::event::{Last, Mark};
use crate::machine::{State, machine};
use crate::work::{Order, Work};

/// A capture that has begun.
pub(crate) struct Capture {
    origin: usize,
    mode: hipStreamCaptureMode,
    thread: ThreadId,
    nodes: Vec<Node>,
    /// The nodes that each stream's next one comes behind.
    fronts: BTreeMap<usize, Vec<usize>>,
    pub(crate) is_invalid: bool,
}

/// Work of a graph.
pub(crate) struct Node {
    work: Arc<Work>,
    board: usize,
    /// Earlier nodes that it comes behind.
    after: Vec<usize>,
}

/// A graph.
#[derive(Clone)]
pub(crate) struct Graph(Arc<Vec<Node>>);

/// A graph that can be launched.
pub(crate) struct Executable {
    graph: Graph,
    /// Behind its last launch: launches of one are in order.
    last: Option<Mark>,
}

impl State {
    /// Begins a capture of a stream.
    pub(crate) fn begin_capture(
        &mut self,
        stream: usize,
        mode: hipStreamCaptureMode,
    ) -> Result<()> {
        if mode > hipStreamCaptureModeRelaxed {
            return Err(Code::INVALID_VALUE);
        }
        let found = self.streams.get(stream)?;
        if self.boards[found.board].default_stream == stream {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if found.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let capture = self.captures.insert(Capture {
            origin: stream,
            mode,
            thread: std::thread::current().id(),
            nodes: vec![],
            fronts: BTreeMap::from([(stream, vec![])]),
            is_invalid: false,
        });
        self.streams.get_mut(stream)?.capture = Some(capture);
        Ok(())
    }

    /// Adds work to the capture that a stream is part of.
    pub(crate) fn capture(&mut self, stream: usize, work: Work) -> Result<()> {
        let found = self.streams.get(stream)?;
        let (board, capture) = (found.board, found.capture.ok_or(Code::ILLEGAL_STATE)?);
        let capture = self.captures.get_mut(capture)?;
        if capture.is_invalid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        let front = capture.fronts.entry(stream).or_default();
        let after = std::mem::replace(front, vec![capture.nodes.len()]);
        capture.nodes.push(Node { work: Arc::new(work), board, after });
        Ok(())
    }

    /// What an event that is recorded in a captured stream stands for.
    pub(crate) fn captured_front(&self, stream: usize, capture: usize) -> Result<Last> {
        let found = self.captures.get(capture)?;
        if found.is_invalid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        let nodes = found.fronts.get(&stream).cloned().unwrap_or_default();
        Ok(Last::Captured { capture, nodes })
    }

    /// Lets a stream's next work come behind nodes of a capture, whose part it becomes.
    pub(crate) fn join_capture(
        &mut self,
        stream: usize,
        capture: usize,
        nodes: &[usize],
    ) -> Result<()> {
        let own = self.streams.get(stream)?.capture;
        if own.is_some_and(|own| own != capture) {
            self.invalidate(own);
            self.invalidate(Some(capture));
            return Err(Code::CAPTURE_MERGE);
        }
        // One that has ended holds no work that could be waited for.
        let found = self.captures.get_mut(capture).map_err(|_| Code::CAPTURED_EVENT)?;
        if found.is_invalid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        let front = found.fronts.entry(stream).or_default();
        front.extend(nodes);
        front.sort_unstable();
        front.dedup();
        self.streams.get_mut(stream)?.capture = Some(capture);
        Ok(())
    }

    /// Spoils a capture.
    pub(crate) fn invalidate(&mut self, capture: Option<usize>) {
        if let Some(Ok(capture)) = capture.map(|capture| self.captures.get_mut(capture)) {
            capture.is_invalid = true;
        }
    }

    /// Refuses what may not happen while a capture is open, unless the capture says that it may.
    pub(crate) fn not_capturing(&self) -> Result<()> {
        let own = std::thread::current().id();
        let forbids = |capture: &Capture| match capture.mode {
            hipStreamCaptureModeGlobal => true,
            hipStreamCaptureModeThreadLocal => capture.thread == own,
            _ => false,
        };
        let is_forbidden = self.captures.iter().any(|(_, capture)| forbids(capture));
        if is_forbidden { Err(Code::CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// Ends a capture; the graph's handle.
    pub(crate) fn end_capture(&mut self, stream: usize) -> Result<usize> {
        let handle = self.streams.get(stream)?.capture.ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captures.get(handle)?;
        if capture.origin != stream {
            return Err(Code::CAPTURE_UNMATCHED);
        }
        let is_own = capture.thread == std::thread::current().id();
        if !is_own && capture.mode != hipStreamCaptureModeRelaxed {
            return Err(Code::CAPTURE_THREAD);
        }
        let capture = self.captures.remove(handle)?;
        for stream in self.streams.values_mut().filter(|s| s.capture == Some(handle)) {
            stream.capture = None;
        }
        if capture.is_invalid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        if !capture.is_joined() {
            return Err(Code::CAPTURE_UNJOINED);
        }
        Ok(self.graphs.insert(Graph(Arc::new(capture.nodes))))
    }

    /// Makes a graph one that can be launched.
    pub(crate) fn instantiate(&mut self, graph: usize) -> Result<usize> {
        let graph = self.graphs.get(graph)?.clone();
        Ok(self.executables.insert(Executable { graph, last: None }))
    }

    /// Launches a graph in a stream.
    pub(crate) fn launch_graph(&mut self, executable: usize, stream: usize) -> Result<()> {
        let found = self.executables.get(executable)?;
        let (graph, last) = (found.graph.clone(), found.last.clone());
        let first = self.number_launches(graph.0.len());
        let mut orders = vec![];
        for (launch, node) in (first..).zip(graph.order(first)) {
            let (scene, schedule) = (self.scene(node.board), machine().schedule(launch));
            orders.push(Order { work: node.work.clone(), scene, schedule });
        }
        if let Some(last) = last {
            self.wait_for(stream, last)?;
        }
        self.submit(stream, orders)?;
        let mark = self.mark(stream)?;
        self.executables.get_mut(executable)?.last = Some(mark);
        Ok(())
    }
}

impl Capture {
    /// Whether the origin's next work would come behind all there is.
    fn is_joined(&self) -> bool {
        let mut reached = BTreeSet::new();
        let mut left = self.fronts.get(&self.origin).cloned().unwrap_or_default();
        while let Some(node) = left.pop() {
            if reached.insert(node) {
                left.extend(&self.nodes[node].after);
            }
        }
        reached.len() == self.nodes.len()
    }
}

impl Graph {
    /// The nodes in an order that their dependencies permit; which one depends on the seed.
    fn order(&self, seed: usize) -> Vec<&Node> {
        let mut is_done = vec![false; self.0.len()];
        let mut order = vec![];
        for step in 0..self.0.len() {
            let is_ready =
                |at: &usize| !is_done[*at] && self.0[*at].after.iter().all(|b| is_done[*b]);
            let ready: Vec<usize> = (0..self.0.len()).filter(is_ready).collect();
            let Some(at) = ready.get((seed + step) % ready.len().max(1)) else { break };
            is_done[*at] = true;
            order.push(&self.0[*at]);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(after: &[&[usize]]) -> Graph {
        let node = |(at, after): (usize, &&[usize])| {
            let work = Work::Fill { to: at as u64, value: 0, bytes: 0 };
            Node { work: Arc::new(work), board: at, after: after.to_vec() }
        };
        Graph(Arc::new(after.iter().enumerate().map(node).collect()))
    }

    #[test]
    fn nodes_come_behind_those_that_they_depend_on() {
        let graph = graph(&[&[], &[0], &[0], &[1, 2], &[]]);
        let mut orders = BTreeSet::new();
        for seed in 0..16 {
            let order: Vec<usize> = graph.order(seed).iter().map(|node| node.board).collect();
            assert_eq!(order.len(), 5);
            for (at, node) in order.iter().enumerate() {
                let before = &order[..at];
                assert!(graph.0[*node].after.iter().all(|other| before.contains(other)));
            }
            orders.insert(order);
        }
        assert!(orders.len() > 2, "{orders:?}");
    }
}
