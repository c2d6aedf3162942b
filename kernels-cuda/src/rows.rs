//! Kernel rows of this backend.

use crate::{driver::ViewArgument, image, launcher::Launcher, proof::Claim};
use tandem_hal::{
    Accumulator, Candidate, DeviceInfo, Dir, Error, Extents, IoSet, Judge, Ladder, Needs, Numerics,
    Op, Operator, Options, PORTABLE, Rank, Result, Row, STEPS, Slot, Want, dispatch,
};

/// Targets that every portable kernel is compiled for.
pub(crate) const ALL: &[&str] = &["sm_90a", "sm_100f"];

/// An operator's operands as kernels get them.
pub(crate) type Arguments<D> = <D as Operator>::Io<ViewArgument, ViewArgument>;

/// How a row is launched.
pub(crate) struct Launch<D: Operator> {
    /// The image with its kernels.
    pub(crate) image: &'static str,
    /// Operands that passed the operand check, to launches.
    pub(crate) run: Run<D>,
}

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
    let names = <Arguments<D> as IoSet<ViewArgument, ViewArgument>>::NAMES;
    let mut slots = names.iter().zip(operands).map(|((_, dir), view)| match dir {
        Dir::In => Slot::In(view),
        Dir::Out | Dir::InOut => Slot::Out(view),
    });
    let io = <Arguments<D> as IoSet<ViewArgument, ViewArgument>>::from_slots(&mut slots);
    (row.launch.run)(d, &io, on)
}

/// What a row takes.
type Accepts<D> = fn(&D, &DeviceInfo) -> std::result::Result<(), &'static str>;

/// What launches a row's kernels.
type Run<D> = fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>;

/// A plain kernel for every size, whose rows of data never see each other.
pub(crate) const fn portable<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
) -> Row<D, Launch<D>> {
    plain(image, run, accepts, (PORTABLE, |_, _| Needs { workspace_bytes: 0 }))
}

/// As [`portable`], of a kernel that needs scratch.
pub(crate) const fn scratched<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
    needs: fn(&D, &Extents) -> Needs,
) -> Row<D, Launch<D>> {
    plain(image, run, accepts, (PORTABLE, needs))
}

/// As [`portable`], of a fused operator: the bits are those of its portable steps.
pub(crate) const fn fused<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
) -> Row<D, Launch<D>> {
    plain(image, run, accepts, (STEPS, |_, _| Needs { workspace_bytes: 0 }))
}

const fn plain<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
    (bits, needs): (&'static str, fn(&D, &Extents) -> Needs),
) -> Row<D, Launch<D>> {
    Row {
        name: "portable",
        arch: ALL,
        rank: Rank::Portable,
        numerics: Numerics::RowInvariant,
        bits,
        accumulator: Accumulator::F32,
        tokens: 0..=u64::MAX,
        accepts,
        suits: |_| true,
        needs,
        launch: Launch { image, run },
    }
}

/// A kernel of Hopper that adds in f32, for any number of rows of data, which never see each other; `bits` are those
/// that its kind shares.
pub(crate) const fn hopper<D: Operator>(
    name: &'static str,
    bits: &'static str,
    image: &'static str,
    run: Run<D>,
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
        launch: Launch { image, run },
    }
}

/// Takes every descriptor.
pub(crate) fn any<D>(_: &D, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    Ok(())
}

/// What a row says of a descriptor that it does not accept.
pub(crate) fn refused<D: Operator>(why: &'static str) -> Error {
    Error::Unsupported { op: D::ID.into(), reason: why.into() }
}

/// Whether the conformance run of a row's image on the device's board is on record.
fn proven<D: Operator>(
    on: &DeviceInfo,
) -> impl Fn(&Row<D, Launch<D>>) -> std::result::Result<(), String> {
    |row| {
        let image = image::find(row.launch.image, &on.arch);
        Claim { op: D::ID, row: row.name, sha256: image.map(|i| i.sha256) }.proven(on)
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

    /// Portable kernels of a source that touch memory before those in front of them have ended.
    fn hasty(source: &str) -> Vec<&str> {
        let kernels = source.split("\nKERNEL(").skip(1).filter(|k| k.contains("__portable"));
        let begins = |kernel: &&str| {
            kernel.split_once(") {\n").is_some_and(|(_, body)| body.starts_with("    begin();"))
        };
        kernels.filter(|k| !begins(k)).filter_map(|k| k.split(',').next()).collect()
    }

    fn check<D: Rows>() {
        for row in D::rows() {
            let (name, folder) = (row.launch.image, Path::new(env!("CARGO_MANIFEST_DIR")));
            let source = folder.join("kernels").join(format!("{name}.cu"));
            assert!(source.is_file(), "{} names {name}, which has no source", D::ID);
            let text = std::fs::read_to_string(source).unwrap();
            assert_eq!(hasty(&text), [""; 0], "kernels do not call `begin()` first");
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
