//! A job under way, seen by whoever submitted it.

use std::sync::Arc;
use std::task::{Context, Poll};

use crossbeam_channel::Sender;
use tokio::sync::mpsc;

use super::admission::Permit;
use super::generator::JobId;
use super::job::{Failure, Update};
use super::mailbox::Command;

/// The updates of one job. Dropping it cancels the job unless it is over.
pub struct Generation {
    id: JobId,
    updates: mpsc::UnboundedReceiver<Update>,
    inbox: Sender<Command>,
    is_over: bool,
    _permit: Arc<Permit>,
}

impl Generation {
    pub(super) fn new(
        id: JobId,
        updates: mpsc::UnboundedReceiver<Update>,
        inbox: Sender<Command>,
        permit: Arc<Permit>,
    ) -> Self {
        Self { id, updates, inbox, is_over: false, _permit: permit }
    }

    /// The next update; `Failed` or `Ended` is the last. After the last, or when the engine's
    /// thread is gone, [`Failure::EngineStopped`].
    pub fn poll_update(&mut self, context: &mut Context<'_>) -> Poll<Update> {
        self.updates.poll_recv(context).map(|update| {
            let update = update.unwrap_or(Update::Failed(Failure::EngineStopped));
            self.is_over |= matches!(update, Update::Ended(_) | Update::Failed(_));
            update
        })
    }

    /// As [`Generation::poll_update`], waiting.
    pub async fn update(&mut self) -> Update {
        std::future::poll_fn(|context| self.poll_update(context)).await
    }

    /// Ends the job early: no more tokens are wanted.
    pub fn cancel(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            // A thread that is gone has nothing to cancel.
            let _ = self.inbox.send(Command::Cancel(self.id));
        }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.cancel();
    }
}
