//! Whose turn it is among threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A lock that is given in the order of asking: whoever waits for another one's writes lets the other one write.
#[derive(Default)]
pub(crate) struct Turnstile {
    /// The next number to be given out, and the number whose turn it is.
    numbers: Mutex<(u64, u64)>,
    moved: Condvar,
}

/// The turn, until this is dropped.
pub(super) struct Turn<'a>(&'a Turnstile);

impl Turnstile {
    pub(super) fn enter(&self) -> Turn<'_> {
        let mut numbers = self.numbers();
        let own = numbers.0;
        numbers.0 += 1;
        while numbers.1 != own {
            numbers = self.moved.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(self)
    }

    fn numbers(&self) -> MutexGuard<'_, (u64, u64)> {
        // Two numbers are whole after every statement.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.numbers().1 += 1;
        self.0.moved.notify_all();
    }
}
