//! Opening a lost device again.

use std::time::Duration;

use super::generator::{Generator, GeneratorLimits};
use crate::Error;

/// Makes another generator after the device of one was lost; it is told how.
pub(super) type Reopen<G> = Box<dyn FnMut(&Error) -> crate::Result<G> + Send>;

/// How long it waits before each attempt: a device that is reset takes a while to come back.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(60),
];

/// Attempts at it, fewer and fewer while none leads to a step.
pub(super) struct Reopening<G> {
    reopen: Reopen<G>,
    attempts: usize,
}

impl<G: Generator> Reopening<G> {
    pub(super) fn new(reopen: Reopen<G>) -> Self {
        Self { reopen, attempts: 0 }
    }

    /// Takes note of how many steps there were since it was opened: a device that worked gets all its
    /// attempts again.
    pub(super) fn note_steps(&mut self, steps: u64) {
        if steps > 0 {
            self.attempts = 0;
        }
    }

    /// A generator of equal limits; `None` when `wait` says that nobody wants one any longer.
    ///
    /// # Errors
    /// The last reason why there is none: the device's, or at once one that waiting does not cure.
    pub(super) fn run(
        &mut self,
        mut lost: Error,
        limits: GeneratorLimits,
        wait: impl Fn(Duration) -> bool,
    ) -> crate::Result<Option<G>> {
        while let Some(pause) = PAUSES.get(self.attempts) {
            self.attempts += 1;
            if !wait(*pause) {
                return Ok(None);
            }
            match (self.reopen)(&lost) {
                Ok(generator) if generator.limits() == limits => return Ok(Some(generator)),
                // The text side was made for the limits that held.
                Ok(_) => {
                    let invariant = "a device that is opened again has its limits".to_owned();
                    return Err(Error::Internal { invariant });
                }
                Err(error @ Error::Device(_)) => lost = error,
                Err(error) => return Err(error),
            }
        }
        Err(lost)
    }
}
