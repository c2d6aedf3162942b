//! One operator, shape and row, measured.

use crate::{Budget, Check, Rotation, Subject, Timing, accepting_rows, open};
use serde::Serialize;
use tandem_hal::{Facts, Line, Rates, Result};
use tandem_reference::Card;

/// Which cases are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Beginning of the operator's name.
    pub operator: String,
    /// Parts that the case's line must all have, such as `n=5120,k=8192` or `{tokens=1}`.
    pub parts: Vec<String>,
    /// The row, or all of them.
    pub row: Option<String>,
}

impl Filter {
    /// Whether a case is wanted, whatever its row.
    pub fn takes(&self, operator: &str, case: &str) -> bool {
        operator.starts_with(&self.operator) && self.parts.iter().all(|part| case.contains(part))
    }
}

/// What became of one row at one shape.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `family.name`.
    pub operator: &'static str,
    /// The descriptor's line.
    pub descriptor: String,
    /// The extents' line.
    pub extents: String,
    /// The row, or [`tandem_hal::STEPS`] for the decomposition.
    pub row: String,
    /// Rows of data.
    pub rows: u64,
    /// Bytes that must be read and written once.
    pub bytes: u64,
    /// Operations.
    pub flops: f64,
    /// Times.
    #[serde(flatten)]
    pub timing: Timing,
    /// Gigabytes a second.
    pub gbs: f64,
    /// TFLOP a second.
    pub tflops: f64,
    /// Microseconds that the board needs at least, where its rates are known.
    pub floor_us: Option<f64>,
    /// What takes them.
    pub bound: Option<&'static str>,
    /// The floor as a part of the median.
    pub share: Option<f64>,
    /// Rows of data that were compared and agree; none where one was too much to compare.
    pub agreeing_rows: u64,
    /// The first element that does not agree.
    pub differs: Option<String>,
}

/// A row or a shape that was not measured.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// `family.name`.
    pub operator: &'static str,
    /// The descriptor's and the extents' lines.
    pub case: String,
    /// The row, if there was one to take.
    pub row: Option<String>,
    /// Why.
    pub reason: String,
}

/// A figure or the reason why there is none.
pub enum Outcome {
    /// Measured.
    Measured(Box<Measured>),
    /// Left out.
    Skipped(Skipped),
}

/// Measures every wanted row of an operator on every shape of its card, handing each outcome to
/// `tell` at once.
///
/// # Errors
/// A device that does not open, or what `tell` returns.
pub fn measure<D: Card, E: From<tandem_hal::Error>>(
    provider: &str,
    filter: &Filter,
    tell: &mut dyn FnMut(Outcome) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    for (descriptor, extents) in D::bench_shapes() {
        let case = format!("{} {}", descriptor.line(), extents.line());
        if !filter.takes(D::ID, &case) {
            continue;
        }
        let skipped = |row: Option<&str>, reason: String| {
            let row = row.map(str::to_owned);
            Outcome::Skipped(Skipped { operator: D::ID, case: case.clone(), row, reason })
        };
        let facts = Facts::of(&descriptor);
        let refusal = Budget::of(provider).refusal(&descriptor.cost(&extents), &facts, &extents);
        if let Some(reason) = refusal {
            tell(skipped(None, reason))?;
            continue;
        }
        let rows = accepting_rows(provider, &descriptor, &extents)?;
        if rows.is_empty() {
            tell(skipped(None, format!("{provider} has no row for it")))?;
        }
        for row in rows.into_iter().filter(|row| filter.row.as_deref().is_none_or(|r| r == *row)) {
            tell(match one(provider, &descriptor, &extents, row) {
                Ok(measured) => Outcome::Measured(Box::new(measured)),
                Err(lost @ tandem_hal::Error::DeviceLost { .. }) => return Err(lost.into()),
                Err(error) => skipped(Some(row), error.to_string()),
            })?;
        }
    }
    Ok(())
}

/// One row on one shape.
fn one<D: Card>(
    provider: &str,
    descriptor: &D,
    extents: &tandem_hal::Extents,
    row: &'static str,
) -> Result<Measured> {
    let (budget, facts, cost) =
        (Budget::of(provider), Facts::of(descriptor), descriptor.cost(extents));
    let device = open(provider, D::ID, (row != tandem_hal::STEPS).then_some(row))?;
    let rotation = Rotation::of(&facts, &cost, extents, &budget);
    let subject = Subject::new(&device, descriptor, extents, row, &rotation)?;
    let candidates =
        device.candidates(&descriptor.clone().into(), &tandem_hal::Want::row_invariant(*extents));
    // Steps are rows of other operators, taken by default: those add in f32.
    let own = candidates.iter().find(|c| c.kernel == row);
    let accumulator = own.map_or_else(Default::default, |c| c.accumulator);
    let check = Check::of(descriptor, extents, &subject.once()?, accumulator, &budget)?;
    let timing = Timing::of(&subject, rotation.launches, &budget)?;
    let floor = Rates::of(&device.info().board).map(|rates| rates.floor(&facts, &cost));
    let bytes = cost.read_bytes + cost.written_bytes;
    let (agreeing_rows, differs) = match check {
        Check::Agrees(rows) => (rows, None),
        Check::Differs(why) => (0, Some(why)),
        Check::Skipped => (0, None),
    };
    Ok(Measured {
        operator: D::ID,
        descriptor: descriptor.line(),
        extents: extents.line(),
        row: row.to_owned(),
        rows: extents.at(D::ROWS),
        bytes,
        flops: cost.flops,
        timing,
        gbs: bytes as f64 / timing.us / 1e3,
        tflops: cost.flops / timing.us / 1e6,
        floor_us: floor.map(|floor| floor.us),
        bound: floor.map(|floor| floor.bound),
        share: floor.map(|floor| floor.us / timing.us),
        agreeing_rows,
        differs,
    })
}
