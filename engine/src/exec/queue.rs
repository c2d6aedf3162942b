//! Requests that wait.

use super::sequence::Sequence;
use super::{ClientId, RequestId};
use std::collections::{HashMap, VecDeque};

/// Waiting requests, fair among clients: the next to start is the oldest of the client that was
/// served the fewest tokens (virtual token counters). Those that were set back come before all.
///
/// A client that comes back after a while does not bring the time it stayed away: its count is
/// raised to where the others are.
#[derive(Debug, Default)]
pub(super) struct Queue {
    set_back: VecDeque<Sequence>,
    clients: HashMap<ClientId, Line>,
    /// Count of the client that was last chosen; counts of others rise to it.
    floor_tokens: u64,
    waiting: usize,
}

/// The requests of one client.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Sequence>,
    served_tokens: u64,
}

impl Queue {
    /// A new request; the last of its client.
    pub(super) fn push(&mut self, sequence: Sequence) {
        let line = self.clients.entry(sequence.client()).or_default();
        if line.waiting.is_empty() {
            line.served_tokens = line.served_tokens.max(self.floor_tokens);
        }
        line.waiting.push_back(sequence);
        self.waiting += 1;
    }

    /// A request that ran before; the next of all.
    pub(super) fn push_front(&mut self, sequence: Sequence) {
        self.set_back.push_front(sequence);
        self.waiting += 1;
    }

    /// The next to start.
    pub(super) fn first_mut(&mut self) -> Option<&mut Sequence> {
        if self.set_back.is_empty() {
            let client = self.next_client()?;
            return self.clients.get_mut(&client)?.waiting.front_mut();
        }
        self.set_back.front_mut()
    }

    /// Takes it, and counts its prompt for its client unless it ran before.
    pub(super) fn pop(&mut self) -> Option<Sequence> {
        let sequence = match self.set_back.pop_front() {
            Some(sequence) => sequence,
            None => {
                let client = self.next_client()?;
                let line = self.clients.get_mut(&client)?;
                let sequence = line.waiting.pop_front()?;
                self.floor_tokens = line.served_tokens;
                line.served_tokens += sequence.tokens();
                sequence
            }
        };
        self.waiting -= 1;
        Some(sequence)
    }

    /// Counts tokens that were generated for a client; forgets clients that are no longer ahead of
    /// where they would start anew.
    pub(super) fn charge(&mut self, client: ClientId, tokens: u64) {
        self.clients.entry(client).or_default().served_tokens += tokens;
        let floor = self.floor_tokens;
        self.clients.retain(|_, line| !line.waiting.is_empty() || line.served_tokens > floor);
    }

    /// Takes a request out.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Sequence> {
        let lines = self.clients.values_mut().map(|line| &mut line.waiting);
        let sequence = lines.chain([&mut self.set_back]).find_map(|line| {
            let at = line.iter().position(|sequence| sequence.id == id)?;
            line.remove(at)
        })?;
        self.waiting -= 1;
        Some(sequence)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> + Clone {
        self.set_back.iter().chain(self.clients.values().flat_map(|line| &line.waiting))
    }

    /// Equal counts go by age.
    fn next_client(&self) -> Option<ClientId> {
        let waiting = self.clients.iter().filter_map(|(client, line)| {
            let oldest = line.waiting.front()?;
            Some((line.served_tokens, oldest.id, *client))
        });
        waiting.min().map(|(_, _, client)| client)
    }
}
