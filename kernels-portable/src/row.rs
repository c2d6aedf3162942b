//! Plain rows.

use crate::{Launcher, ViewArgument};
use tandem_hal::{
    Accumulator, DeviceInfo, Dir, Error, Extents, IoSet, Needs, Numerics, Operator, PORTABLE, Rank,
    Result, Row, STEPS, Slot,
};

/// An operator's operands as kernels get them.
pub type Arguments<D> = <D as Operator>::Io<ViewArgument, ViewArgument>;

/// What launches a row's kernels.
pub type Run<D> = fn(&D, &Arguments<D>, &Launcher<'_>) -> Result<()>;

/// What a row takes.
pub type Accepts<D> = fn(&D, &DeviceInfo) -> std::result::Result<(), &'static str>;

/// An operator of this crate.
pub trait Portable: Operator {
    /// Its plain row; none until one is written.
    const ROW: Option<PortableRow<Self>>;
}

/// A plain kernel for every size, whose rows of data never see each other, as all backends have it.
pub struct PortableRow<D: Operator> {
    /// The source with its kernels, without extension: `FAMILY/OP`.
    pub image: &'static str,
    /// Operands that passed the operand check, to launches.
    pub run: Run<D>,
    accepts: Accepts<D>,
    bits: &'static str,
    needs: fn(&D, &Extents) -> Needs,
}

impl<D: Operator> PortableRow<D> {
    /// The row of a backend that compiles it for `arch` and launches it by `launch`.
    pub const fn on<L>(&self, arch: &'static [&'static str], launch: L) -> Row<D, L> {
        Row {
            name: "portable",
            arch,
            rank: Rank::Portable,
            numerics: Numerics::RowInvariant,
            bits: self.bits,
            accumulator: Accumulator::F32,
            tokens: 0..=u64::MAX,
            accepts: self.accepts,
            suits: |_| true,
            needs: self.needs,
            launch,
        }
    }
}

/// A plain kernel.
pub(crate) const fn portable<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
) -> PortableRow<D> {
    scratched(image, run, accepts, |_, _| Needs { workspace_bytes: 0 })
}

/// As [`portable`], of a kernel that needs scratch.
pub(crate) const fn scratched<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
    needs: fn(&D, &Extents) -> Needs,
) -> PortableRow<D> {
    PortableRow { image, run, accepts, bits: PORTABLE, needs }
}

/// As [`portable`], of a fused operator: the bits are those of its portable steps.
pub(crate) const fn fused<D: Operator>(
    image: &'static str,
    run: Run<D>,
    accepts: Accepts<D>,
) -> PortableRow<D> {
    PortableRow { bits: STEPS, ..portable(image, run, accepts) }
}

/// Takes every descriptor.
pub fn any<D>(_: &D, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    Ok(())
}

/// What a row says of a descriptor that it does not accept.
pub fn refused<D: Operator>(why: &'static str) -> Error {
    Error::Unsupported { op: D::ID.into(), reason: why.into() }
}

/// Operands in order of declaration, as a row's [`Run`] takes them.
pub fn arguments<D: Operator>(operands: impl Iterator<Item = ViewArgument>) -> Arguments<D> {
    let names = <Arguments<D> as IoSet<ViewArgument, ViewArgument>>::NAMES;
    let mut slots = names.iter().zip(operands).map(|((_, dir), view)| match dir {
        Dir::In => Slot::In(view),
        Dir::Out | Dir::InOut => Slot::Out(view),
    });
    <Arguments<D> as IoSet<ViewArgument, ViewArgument>>::from_slots(&mut slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Plain kernels of a source that touch memory before those in front of them have ended.
    fn hasty(source: &str) -> Vec<&str> {
        let kernels = source.split("\nKERNEL(").skip(1).filter(|k| k.contains("__portable"));
        let begins = |kernel: &&str| {
            kernel.split_once(") {\n").is_some_and(|(_, body)| body.starts_with("    begin();"))
        };
        kernels.filter(|k| !begins(k)).filter_map(|k| k.split(',').next()).collect()
    }

    fn check<D: Portable>() {
        let Some(row) = D::ROW else { return };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let source = folder.join(format!("{}.cu", row.image));
        assert!(source.is_file(), "{} names {}, which has no source", D::ID, row.image);
        let text = std::fs::read_to_string(source).unwrap();
        assert_eq!(hasty(&text), [""; 0], "kernels do not call `begin()` first");
    }

    macro_rules! check_all {
        ([] $($name:ident)*) => { $(check::<tandem_hal::$name>();)* };
    }

    #[test]
    fn every_row_has_a_source_whose_kernels_wait_first() {
        tandem_hal::for_each_operator!([check_all]);
    }
}
