//! What every bench needs: operators with filled operands on a device, timed by the device.
//!
//! Shapes are in the cards. Each accepting kernel row is timed by name, so that a portable row that
//! beats a tuned one is seen. Criterion's benches launch one after the other on the same operands;
//! the program `board` replays graphs whose launches take turns among enough copies of weights and
//! caches to find them in memory alone, and compares with the least time a board needs ([`tandem_hal::Rates`]).

mod budget;
mod case;
mod check;
mod inputs;
mod report;
mod rotation;
mod subject;
mod timing;

pub use budget::Budget;
pub use case::{Filter, Measured, Outcome, Skipped, measure};
pub use check::Check;
pub use inputs::Inputs;
pub use report::Report;
pub use rotation::Rotation;
pub use subject::{Once, Subject};
pub use timing::Timing;

use std::sync::Arc;
use tandem_hal::{Device, Error, Extents, Operator, Options, Provider, Result, STEPS, Want};

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
        reason: "providers are cuda, rocm and reference".into(),
    };
    let provider = providers().into_iter().find(|p| p.name() == name).ok_or_else(missing)?;
    let overrides = row.map(|row| (op.to_owned(), row.to_owned())).into_iter().collect();
    let mut devices = provider.open(&[0], &Options { overrides })?;
    devices.pop().ok_or_else(missing)
}

/// Names of the rows of provider `name` that take `descriptor` when forced, proven or not, and
/// [`STEPS`] where it has a decomposition.
///
/// # Errors
/// When the device does not open.
pub fn accepting_rows<D: Operator>(
    name: &str,
    descriptor: &D,
    extents: &Extents,
) -> Result<Vec<&'static str>> {
    let (op, want) = (descriptor.clone().into(), Want::row_invariant(*extents));
    let mut rows = vec![];
    for row in open(name, D::ID, None)?.candidates(&op, &want).into_iter().map(|c| c.kernel) {
        let forced = open(name, D::ID, Some(row))?.candidates(&op, &want);
        if forced.iter().any(|c| c.kernel == row && c.verdict.is_ok()) {
            rows.push(row);
        }
    }
    if tandem_hal::is_fused(descriptor) {
        rows.push(STEPS);
    }
    Ok(rows)
}
