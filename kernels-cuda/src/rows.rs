//! Kernel rows of this backend.

use crate::{driver::ViewArgument, image, launcher::Launcher, proof};
use tandem_hal::{
    Accumulator, Candidate, DeviceInfo, Judge, Ladder, Needs, Numerics, Op, Operator, Options,
    Rank, Result, Row, Want, dispatch,
};
use tandem_portable::{Accepts, Arguments, Claim, Portable, arguments};

/// Targets that every portable kernel is compiled for.
pub(crate) const ALL: &[&str] = &["sm_90a", "sm_100f"];

/// How a row is launched.
pub(crate) struct Launch<D: Operator> {
    /// The image with its kernels.
    pub(crate) image: &'static str,
    /// Operands that passed the operand check, to launches.
    pub(crate) run: Run<D>,
}

/// What launches a row's kernels.
pub(crate) enum Run<D: Operator> {
    /// Those that all backends have.
    Plain(tandem_portable::Run<D>),
    /// Those of this one.
    Tuned(Tuned<D>),
}

/// What launches a tuned row's kernels.
type Tuned<D> = fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>;

/// An operator of this backend.
pub(crate) trait Rows: Operator {
    /// Its kernels; none until one is written.
    fn rows() -> &'static [Row<Self, Launch<Self>>];
}

/// Runs a row on operands in order of declaration.
///
/// # Errors
/// What the target returns.
pub(crate) fn launch<D: Rows>(
    d: &D,
    row: &Row<D, Launch<D>>,
    operands: impl Iterator<Item = ViewArgument>,
    on: &Launcher<'_>,
) -> Result<()> {
    let io = arguments::<D>(operands);
    match row.launch.run {
        Run::Plain(run) => run(d, &io, &on.plain()),
        Run::Tuned(run) => run(d, &io, on),
    }
}

/// The plain row of an operator that has one.
pub(crate) const fn portable<D: Portable>() -> Row<D, Launch<D>> {
    match D::ROW {
        Some(row) => row.on(ALL, Launch { image: row.image, run: Run::Plain(row.run) }),
        None => panic!("the operator has no plain row"),
    }
}

/// The rows of an operator that has none but, perhaps, the plain one.
pub(crate) const fn plain_alone<D: Portable>() -> &'static [Row<D, Launch<D>>] {
    const { if D::ROW.is_some() { &[portable::<D>()] } else { &[] } }
}

/// A kernel of Hopper that adds in f32, for any number of rows of data, which never see each other; `bits` are those
/// that its kind shares.
pub(crate) const fn hopper<D: Operator>(
    name: &'static str,
    bits: &'static str,
    image: &'static str,
    run: Tuned<D>,
    accepts: Accepts<D>,
) -> Row<D, Launch<D>> {
    Row {
        name,
        arch: &["sm_90a"],
        rank: Rank::Tuned,
        numerics: Numerics::RowInvariant,
        bits,
        accumulator: Accumulator::F32,
        tokens: 0..=u64::MAX,
        accepts,
        suits: |_| true,
        needs: |_, _| Needs { workspace_bytes: 0 },
        launch: Launch { image, run: Run::Tuned(run) },
    }
}

/// Whether the conformance run of a row's image on the device's board is on record.
fn proven<D: Operator>(
    on: &DeviceInfo,
) -> impl Fn(&Row<D, Launch<D>>) -> std::result::Result<(), String> {
    |row| {
        let image = image::find(row.launch.image, &on.arch);
        let claim = Claim { op: D::ID, row: row.name, sha256: image.map(|i| i.sha256) };
        proof::record().proves(&claim, &on.board, &on.arch)
    }
}

/// The image of an operator's row.
pub(crate) fn image(op: &str, row: &str) -> Option<&'static str> {
    fn of<D: Rows>(row: &str) -> Option<&'static str> {
        D::rows().iter().find(|r| r.name == row).map(|r| r.launch.image)
    }
    macro_rules! of_any {
        ([] $($name:ident)*) => {
            match op {
                $(<tandem_hal::$name as Operator>::ID => of::<tandem_hal::$name>(row),)*
                _ => None,
            }
        };
    }
    tandem_hal::for_each_operator!([of_any])
}

/// Every row with its verdict.
pub(crate) fn table(op: &Op, info: &DeviceInfo, want: &Want, options: &Options) -> Vec<Candidate> {
    fn of<D: Rows>(d: &D, on: (&DeviceInfo, &Want, &Options)) -> Vec<Candidate> {
        judged(on, |judge| judge.candidates(D::rows(), d))
    }
    dispatch!(op, d => of(d, (info, want, options)))
}

/// The rows of an operator for a plan.
///
/// # Errors
/// [`Error::Unsupported`] with the reason of each row.
pub(crate) fn choose<D: Rows>(
    d: &D,
    info: &DeviceInfo,
    want: &Want,
    options: &Options,
) -> Result<Ladder<D, Launch<D>>> {
    judged((info, want, options), |judge| judge.choose(D::rows(), d))
}

fn judged<D: Rows, T>(
    (info, want, options): (&DeviceInfo, &Want, &Options),
    with: impl FnOnce(&Judge<'_, D, Launch<D>>) -> T,
) -> T {
    let step_bits = |op: &Op| dispatch!(op, d => choose(d, info, want, options).ok().map(|ladder| ladder.bits()));
    let (forced, proven) = (options.forced(D::ID), proven(info));
    with(&Judge { info, want, forced, proven: &proven, step_bits: &step_bits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image;
    use std::path::Path;

    fn check<D: Rows>() {
        for row in D::rows() {
            let name = row.launch.image;
            let folder = match row.launch.run {
                Run::Plain(_) => "../kernels-portable/kernels",
                Run::Tuned(_) => "kernels",
            };
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let source = folder.join(format!("{name}.cu"));
            assert!(source.is_file(), "{} names {name}, which has no source", D::ID);
            for target in row.arch {
                let there = image::absent().is_some() || image::find(name, target).is_some();
                assert!(there, "{} names {name}, which is not compiled for {target}", D::ID);
            }
        }
    }

    macro_rules! check_all {
        ([] $($name:ident)*) => { $(check::<tandem_hal::$name>();)* };
    }

    #[test]
    fn every_row_has_a_source_and_images_for_its_targets() {
        tandem_hal::for_each_operator!([check_all]);
    }
}
