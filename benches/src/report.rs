//! What a run of the board prints and writes.

use crate::{Measured, Outcome, Skipped};
use serde::Serialize;
use tandem_hal::DeviceInfo;

/// Every outcome of a run, as `--json` writes it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The device, such as `cuda:0`.
    pub device: String,
    /// The board.
    pub board: String,
    /// Its instruction set.
    pub arch: String,
    /// Figures, in the order they were taken.
    pub cases: Vec<Measured>,
    /// What was left out.
    pub skipped: Vec<Skipped>,
}

impl Report {
    /// Of nothing yet.
    pub fn new(info: &DeviceInfo) -> Report {
        let (device, board, arch) = (info.name.clone(), info.board.clone(), info.arch.clone());
        Report { device, board, arch, cases: vec![], skipped: vec![] }
    }

    /// Takes an outcome and gives its line.
    pub fn add(&mut self, outcome: Outcome) -> String {
        match outcome {
            Outcome::Measured(measured) => {
                let line = line(&measured);
                self.cases.push(*measured);
                line
            }
            Outcome::Skipped(skipped) => {
                let Skipped { operator, case, row, reason } = &skipped;
                let row = row.as_ref().map_or_else(String::new, |row| format!(" {row}"));
                let line = format!("SKIPPED {operator}{case}{row}: {reason}");
                self.skipped.push(skipped);
                line
            }
        }
    }

    /// Cases whose outputs are not what the card computes.
    pub fn wrong(&self) -> usize {
        self.cases.iter().filter(|case| case.differs.is_some()).count()
    }
}

fn line(m: &Measured) -> String {
    let floor = match (m.floor_us, m.bound, m.share) {
        (Some(us), Some(bound), Some(share)) => {
            format!("floor {us:.2} us ({bound}), {share:.2} of it")
        }
        _ => "no floor known".to_owned(),
    };
    let check = match (&m.differs, m.agreeing_rows) {
        (Some(why), _) => format!("DIFFERS: {why}"),
        (None, 0) => "not compared".to_owned(),
        (None, rows) => format!("{rows} rows agree"),
    };
    let crate::Timing { us, p10_us, p90_us, launches, replays } = m.timing;
    format!(
        "{}{} {} {}: {us:.2} us ({p10_us:.2} to {p90_us:.2}; {replays} x {launches}), \
         {:.0} GB/s, {:.2} TFLOP/s, {floor}; {check}",
        m.operator, m.descriptor, m.extents, m.row, m.gbs, m.tflops
    )
}
