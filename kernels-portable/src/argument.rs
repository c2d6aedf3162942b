//! Arguments of launches.

use std::ffi::c_void;

/// An operand as kernels get it: `View` of the device headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ViewArgument {
    /// First byte of the codes; 0 for an operand without elements.
    pub codes: u64,
    /// First byte of the scales.
    pub scales: u64,
    /// Units from row to row of the last axis.
    pub stride: u64,
}

/// How a cache's entries lie and what they hold: `Entry` of the device headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct EntryArgument {
    /// Arrangement, and rule of its scales.
    pub form: u32,
    /// See `form`.
    pub rule: u32,
    /// Elements under a scale.
    pub block: u32,
    /// Elements.
    pub width: u32,
    /// Entries of a page; larger pages than addresses reach are all alike.
    pub page_entries: u32,
    /// Bytes.
    pub bytes: u64,
    /// Entries of the cache.
    pub entries: u64,
}

/// Numbers that a launch's rows share: `Frequencies` of the device headers.
pub type TableArgument = [f32; 256];

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// An operand.
    View(ViewArgument),
    /// A size or an address.
    U64(u64),
    /// A choice.
    U32(u32),
    /// A signed coordinate.
    I32(i32),
    /// A number.
    F32(f32),
    /// The entries of a cache.
    Entry(EntryArgument),
    /// Numbers made on the host.
    Table(&'a TableArgument),
    /// Numbers that the kernel takes by value, as many as it says.
    Words(&'a [u64]),
}

impl Argument<'_> {
    /// Where its bytes lie, and how many there are.
    pub fn place(&self) -> (*const c_void, usize) {
        fn of<T>(value: &T) -> (*const c_void, usize) {
            (std::ptr::from_ref(value).cast(), size_of::<T>())
        }
        match self {
            Argument::View(value) => of(value),
            Argument::U64(value) => of(value),
            Argument::U32(value) => of(value),
            Argument::I32(value) => of(value),
            Argument::F32(value) => of(value),
            Argument::Entry(value) => of(value),
            Argument::Table(value) => of(*value),
            Argument::Words(value) => (value.as_ptr().cast(), size_of_val(*value)),
        }
    }

    /// A copy of its bytes, zeros where the headers' structures have gaps.
    pub fn bytes(&self) -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        match self {
            Argument::View(view) => words(&[view.codes, view.scales, view.stride]),
            Argument::U64(value) => words(&[*value]),
            Argument::U32(value) => value.to_le_bytes().into(),
            Argument::I32(value) => value.to_le_bytes().into(),
            Argument::F32(value) => value.to_le_bytes().into(),
            Argument::Entry(entry) => {
                let halves =
                    [entry.form, entry.rule, entry.block, entry.width, entry.page_entries, 0];
                let halves = halves.into_iter().flat_map(u32::to_le_bytes);
                halves.chain(words(&[entry.bytes, entry.entries])).collect::<Vec<_>>()
            }
            Argument::Table(table) => {
                table.iter().flat_map(|number| number.to_le_bytes()).collect()
            }
            Argument::Words(list) => words(list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_sizes_of_the_device_headers() {
        let view = Argument::View(ViewArgument::default());
        let sizes = [view, Argument::U64(0), Argument::U32(0), Argument::F32(0.0)];
        assert_eq!(sizes.map(|a| a.place().1), [24, 8, 4, 4]);
        assert_eq!(Argument::Words(&[0; 3]).place().1, 24);
    }
}
