//! Progress of work that takes over a second: a bar on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};

use crate::console;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between plain lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Progress on standard error.
pub(crate) struct Progress {
    what: &'static str,
    unit: Unit,
    started: Instant,
    state: State,
}

#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Pieces,
}

enum State {
    Silent,
    Bar(ProgressBar),
    Lines { next: Instant },
}

impl Progress {
    /// Of work in bytes that begins now.
    pub(crate) fn new(what: &'static str) -> Self {
        Self::of(what, Unit::Bytes)
    }

    /// Of work in countable pieces that begins now.
    pub(crate) fn counting(what: &'static str) -> Self {
        Self::of(what, Unit::Pieces)
    }

    fn of(what: &'static str, unit: Unit) -> Self {
        Self { what, unit, started: Instant::now(), state: State::Silent }
    }

    /// Shows that `done` of `total` are done.
    pub(crate) fn show(&mut self, done: u64, total: u64) {
        if let Some(line) = self.line((done, total), Instant::now(), io::stderr().is_terminal()) {
            console::aside(line);
        }
    }

    /// Moves the bar, or answers the line that is due.
    fn line(&mut self, (done, total): (u64, u64), now: Instant, terminal: bool) -> Option<String> {
        if matches!(self.state, State::Silent) && now - self.started > PATIENCE {
            self.state = match terminal {
                true => {
                    State::Bar(bar(self.what, self.unit, total).with_elapsed(now - self.started))
                }
                false => State::Lines { next: now },
            };
        }
        match &mut self.state {
            State::Bar(bar) => bar.set_position(done),
            State::Lines { next } if now >= *next => {
                *next = now + INTERVAL;
                return Some(match self.unit {
                    Unit::Bytes => {
                        let (done, total) = (DecimalBytes(done), DecimalBytes(total));
                        format!("{}: {done} of {total}", self.what)
                    }
                    Unit::Pieces => format!("{}: {done} of {total}", self.what),
                });
            }
            State::Silent | State::Lines { .. } => {}
        }
        None
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

fn bar(what: &'static str, unit: Unit, total: u64) -> ProgressBar {
    let template = match unit {
        Unit::Bytes => {
            "{msg} [{bar:32}] {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
        }
        Unit::Pieces => "{msg} [{bar:32}] {pos} of {len}, {per_sec}, {eta} left",
    };
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_message(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_work_gives_plain_lines_where_there_is_no_terminal() {
        let mut progress = Progress::new("loading weights");
        let started = progress.started;
        let lines: Vec<_> = (0..=20_u64)
            .filter_map(|halves| {
                let now = started + Duration::from_millis(500 * halves);
                progress.line((halves * 100_000_000, 2_000_000_000), now, false)
            })
            .collect();
        let expected = ["300.00 MB of 2.00 GB", "1.30 GB of 2.00 GB"];
        assert_eq!(lines, expected.map(|bytes| format!("loading weights: {bytes}")));
        let mut progress = Progress::counting("answering");
        let late = progress.started + 2 * PATIENCE;
        assert_eq!(progress.line((3, 40), late, false).unwrap(), "answering: 3 of 40");
    }
}
