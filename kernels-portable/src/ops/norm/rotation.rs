//! What kernels need to know of a rotation.

use crate::TableArgument;
use tandem_hal::Rotate;

/// Frequencies as kernels get them; `None` when there are more than an argument holds, or some that would
/// make angles beyond the kernels' reduction.
pub(in crate::ops) fn table(frequencies: &[f32]) -> Option<TableArgument> {
    let mut table: TableArgument = [0.0; 256];
    let reduced = frequencies.iter().all(|f| (0.0..=1.0).contains(f));
    table.get_mut(..frequencies.len()).filter(|_| reduced)?.copy_from_slice(frequencies);
    Some(table)
}

/// A rotation as kernels get it.
pub(in crate::ops) struct Rotation {
    pub(in crate::ops) table: TableArgument,
    pub(in crate::ops) pairs: u64,
    pub(in crate::ops) group: i32,
    pub(in crate::ops) inverse: u32,
}

impl Rotation {
    /// # Errors
    /// Why kernels here do not take it.
    pub(in crate::ops) fn of(d: &Rotate) -> Result<Rotation, &'static str> {
        // The count comes first: the frequencies of any descriptor are not made.
        let few = d.rotary / 2 <= 256;
        let table = few.then(|| table(&d.frequencies())).flatten();
        Ok(Rotation {
            table: table.ok_or("more than 256 pairs, or frequencies above 1")?,
            pairs: d.rotary / 2,
            // Larger groups than positions exist put every token at 0.
            group: i32::try_from(d.group).unwrap_or(i32::MAX),
            inverse: d.inverse.into(),
        })
    }
}
