//! Ctrl-C stops an answer; when there is none, the program.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use tandem_engine::{Error, Result};

const IDLE: u8 = 0;
const ANSWERING: u8 = 1;
const STOPPED: u8 = 2;

/// What shells report for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Listens for Ctrl-C.
pub(crate) struct Interrupt(Arc<AtomicU8>);

/// An answer in progress; it is over when this is dropped.
pub(crate) struct Answering(Arc<AtomicU8>);

impl Interrupt {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system refuses, or somebody listens already.
    pub(crate) fn install() -> Result<Self> {
        let state = Arc::new(AtomicU8::new(IDLE));
        let seen = state.clone();
        let handler = move || {
            if seen.compare_exchange(ANSWERING, STOPPED, SeqCst, SeqCst) == Err(IDLE) {
                process::exit(INTERRUPTED);
            }
        };
        ctrlc::set_handler(handler).map_err(|error| Error::Io {
            action: "listen for",
            path: "Ctrl-C".into(),
            source: io::Error::other(error),
        })?;
        Ok(Self(state))
    }

    /// An answer begins.
    pub(crate) fn answering(&self) -> Answering {
        self.0.store(ANSWERING, SeqCst);
        Answering(self.0.clone())
    }
}

impl Answering {
    /// Whether Ctrl-C was pressed since the answer began.
    pub(crate) fn stopped(&self) -> bool {
        self.0.load(SeqCst) == STOPPED
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.store(IDLE, SeqCst);
    }
}
