//! What every bench needs: operators with filled operands on a device, timed by the device.
//!
//! Shapes are in the cards. Each accepting kernel row is timed by name, so that a portable row that
//! beats a tuned one is seen.

mod budget;
mod subject;

pub use budget::Budget;
pub use subject::Subject;

use std::sync::Arc;
use tandem_hal::{Device, Error, Op, Options, Provider, Result, Want};

/// The providers there are, first those of GPUs.
pub fn providers() -> Vec<Box<dyn Provider>> {
    vec![
        Box::new(tandem_cuda::CudaProvider),
        Box::new(tandem_rocm::RocmProvider),
        Box::new(tandem_reference::RefProvider::default()),
    ]
}

/// Opens the first device of provider `name`, with `row` forced for `op`.
///
/// # Errors
/// When there is no such provider or device.
pub fn open(name: &str, op: &str, row: Option<&str>) -> Result<Arc<dyn Device>> {
    let missing = || Error::NoDevice {
        name: name.into(),
        reason: "providers are cuda, rocm and reference; set TANDEM_BENCH_DEVICE".into(),
    };
    let provider = providers().into_iter().find(|p| p.name() == name).ok_or_else(missing)?;
    let overrides = row.map(|row| (op.to_owned(), row.to_owned())).into_iter().collect();
    let mut devices = provider.open(&[0], &Options { overrides })?;
    devices.pop().ok_or_else(missing)
}

/// Names of the rows that accept `op` on `device`; [`tandem_hal::STEPS`] where only the decomposition
/// does.
pub fn accepting_rows(device: &dyn Device, op: &Op, want: &Want) -> Vec<&'static str> {
    let candidates = device.candidates(op, want).into_iter();
    candidates.filter(|c| c.verdict.is_ok()).map(|c| c.kernel).collect()
}
