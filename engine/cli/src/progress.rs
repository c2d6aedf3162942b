//! Progress of work that takes over a second: a bar on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between plain lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Progress in bytes, on standard error.
pub(crate) struct Progress {
    what: &'static str,
    started: Instant,
    state: State,
}

enum State {
    Silent,
    Bar(ProgressBar),
    Lines { next: Instant },
}

impl Progress {
    /// Of work that begins now.
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, started: Instant::now(), state: State::Silent }
    }

    /// Shows that `done` of `total` bytes are done.
    pub(crate) fn show(&mut self, done: u64, total: u64) {
        if matches!(self.state, State::Silent) && self.started.elapsed() > PATIENCE {
            self.state = if io::stderr().is_terminal() {
                State::Bar(bar(self.what, total))
            } else {
                State::Lines { next: Instant::now() }
            };
        }
        match &mut self.state {
            State::Silent => {}
            State::Bar(bar) => bar.set_position(done),
            State::Lines { next } if Instant::now() >= *next => {
                let gigabytes = |bytes| bytes as f64 / 1e9;
                let (done, total) = (gigabytes(done), gigabytes(total));
                eprintln!("{}: {done:.1} of {total:.1} GB", self.what);
                *next = Instant::now() + INTERVAL;
            }
            State::Lines { .. } => {}
        }
    }
}

impl Drop for Progress {
    /// Takes the bar away, also when the work failed, so that the error stands alone.
    fn drop(&mut self) {
        if let State::Bar(bar) = &self.state {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, total: u64) -> ProgressBar {
    let template = "{msg} [{bar:32}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_message(what)
}
