//! Streams: a thread each, which does its work in order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

use crate::code::{Code, Result};
use crate::event::Mark;
use crate::machine::{Guard, State, machine};
use crate::work::{Failure, Order};

/// A stream.
pub(crate) struct Stream {
    pub(crate) board: usize,
    /// Whether it keeps in turn with the board's default stream.
    pub(crate) is_blocking: bool,
    /// The capture that it is part of.
    pub(crate) capture: Option<usize>,
    tasks: VecDeque<Task>,
    is_busy: bool,
    /// Whether it has a thread.
    is_served: bool,
    is_destroyed: bool,
}

/// What a stream is to do.
enum Task {
    Wait(Mark),
    Record(Mark),
    Orders(Vec<Order>),
}

impl Stream {
    pub(crate) fn new(board: usize, is_blocking: bool) -> Self {
        Self {
            board,
            is_blocking,
            capture: None,
            tasks: VecDeque::new(),
            is_busy: false,
            is_served: false,
            is_destroyed: false,
        }
    }

    /// Whether all that it was given is done.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty() && !self.is_busy
    }
}

impl State {
    /// The stream that C means: no handle is the default one of the thread's board.
    pub(crate) fn stream_of(&self, handle: usize, current: usize) -> Result<usize> {
        let handle = if handle == 0 { self.boards[current].default_stream } else { handle };
        let stream = self.streams.get(handle)?;
        if stream.is_destroyed { Err(Code::INVALID_HANDLE) } else { Ok(handle) }
    }

    /// Work behind what a stream holds.
    pub(crate) fn submit(&mut self, stream: usize, orders: Vec<Order>) -> Result<()> {
        self.give(stream, Task::Orders(orders))
    }

    /// A mark behind what a stream holds.
    pub(crate) fn mark(&mut self, stream: usize) -> Result<Mark> {
        let mark = Mark::default();
        self.give(stream, Task::Record(mark.clone()))?;
        Ok(mark)
    }

    /// Lets what comes behind wait for a mark.
    pub(crate) fn wait_for(&mut self, stream: usize, mark: Mark) -> Result<()> {
        self.give(stream, Task::Wait(mark))
    }

    /// Behind the work of those streams with which this one keeps in turn.
    fn give(&mut self, stream: usize, task: Task) -> Result<()> {
        let (board, is_blocking) = {
            let stream = self.streams.get(stream)?;
            (stream.board, stream.is_blocking)
        };
        let default = self.boards[board].default_stream;
        let is_other = |handle: usize, other: &Stream| {
            let is_in_turn = stream == default || handle == default;
            handle != stream && other.board == board && other.is_blocking && is_in_turn
        };
        let others = self.streams.iter().filter(|(handle, other)| is_other(*handle, other));
        let busy = others.filter(|(_, other)| !other.is_idle() && is_blocking);
        let busy: Vec<usize> = busy.map(|(handle, _)| handle).collect();
        for other in busy {
            let mark = Mark::default();
            self.push(other, Task::Record(mark.clone()))?;
            self.push(stream, Task::Wait(mark))?;
        }
        self.push(stream, task)
    }

    fn push(&mut self, handle: usize, task: Task) -> Result<()> {
        let stream = self.streams.get_mut(handle)?;
        if !stream.is_served {
            let name = format!("stream {handle:#x}");
            let served = thread::Builder::new().name(name).spawn(move || serve(handle));
            served.map_err(|_| Code::OUT_OF_MEMORY)?;
            stream.is_served = true;
        }
        stream.tasks.push_back(task);
        machine().notify();
        Ok(())
    }

    /// Ends a stream when its work is done.
    pub(crate) fn destroy_stream(&mut self, handle: usize) -> Result<()> {
        let stream = self.streams.get_mut(handle)?;
        stream.is_destroyed = true;
        if !stream.is_served {
            self.streams.remove(handle)?;
        }
        machine().notify();
        Ok(())
    }
}

/// Waits until a stream is idle.
pub(crate) fn synchronise(mut state: Guard, handle: usize) -> Result<Guard> {
    while !state.streams.get(handle).map_or(true, Stream::is_idle) {
        state = machine().wait(state);
    }
    Ok(state)
}

/// Waits until a board is idle.
pub(crate) fn drain(mut state: Guard, board: usize) -> Guard {
    let is_busy = |stream: &Stream| stream.board == board && !stream.is_idle();
    while state.streams.iter().any(|(_, stream)| is_busy(stream)) {
        state = machine().wait(state);
    }
    state
}

/// Does a stream's work until it is destroyed.
fn serve(handle: usize) {
    let mut state = machine().lock();
    loop {
        let Ok(stream) = state.streams.get_mut(handle) else { return };
        let is_ready = match stream.tasks.front() {
            None if stream.is_destroyed => {
                // Nobody finds it from here on.
                let _gone = state.streams.remove(handle);
                machine().notify();
                return;
            }
            None => false,
            Some(Task::Wait(mark)) => mark.get().is_some(),
            Some(_) => true,
        };
        let board = stream.board;
        let task = if is_ready { stream.tasks.pop_front() } else { None };
        let Some(task) = task else {
            state = machine().wait(state);
            continue;
        };
        stream.is_busy = true;
        let has_failed = state.boards[board].fault.is_some();
        drop(state);
        let outcome = perform(task, has_failed);
        state = machine().lock();
        if let Ok(stream) = state.streams.get_mut(handle) {
            stream.is_busy = false;
        }
        if let Err((board, failure)) = outcome {
            state.fail(board, &failure);
        }
        machine().notify();
    }
}

/// Does a task; a failure and the board that it befell.
fn perform(task: Task, has_failed: bool) -> std::result::Result<(), (usize, Failure)> {
    match task {
        Task::Wait(_) => {}
        // Marked once.
        Task::Record(mark) => drop(mark.set(Instant::now())),
        // A board that has failed does nothing any more.
        Task::Orders(_) if has_failed => {}
        Task::Orders(orders) => {
            for order in orders {
                let outcome = catch_unwind(AssertUnwindSafe(|| order.perform()));
                let outcome = outcome.unwrap_or_else(|_| Err(Failure::broken()));
                outcome.map_err(|failure| (order.board(), failure))?;
            }
        }
    }
    Ok(())
}

impl State {
    /// Notes a board's first failure, and tells it.
    fn fail(&mut self, board: usize, failure: &Failure) {
        if self.boards[board].fault.is_none() {
            self.boards[board].fault = Some(failure.code);
            let name = self.boards[board].board.name;
            machine().tell(&format!("device {board} ({name}): {}", failure.words));
        }
    }
}
