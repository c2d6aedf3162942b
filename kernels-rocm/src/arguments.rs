//! Arguments of launches, as they lie in memory for the kernel. The driver takes them so, and cannot say what a
//! kernel expects; the code object does.

use tandem_hal::{Error, Result};
use tandem_portable::Argument;

use crate::Entry;

/// The arguments of a kernel, side by side where it reads them.
///
/// # Errors
/// When their number or sizes are not those of its parameters.
pub fn packed(entry: &Entry, arguments: &[Argument<'_>]) -> Result<Vec<u8>> {
    let given: Vec<_> = arguments.iter().map(Argument::bytes).collect();
    let taken: Vec<usize> = entry.arguments.iter().map(|(_, bytes)| *bytes as usize).collect();
    let sizes: Vec<usize> = given.iter().map(Vec::len).collect();
    if sizes != taken {
        return Err(Error::Unsupported {
            op: format!("kernel {}", entry.name),
            reason: format!("arguments of {sizes:?} bytes, it takes {taken:?}"),
        });
    }
    let mut packed = vec![];
    for ((offset, _), bytes) in entry.arguments.iter().zip(given) {
        packed.resize(*offset as usize, 0);
        packed.extend(bytes);
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_object;
    use tandem_portable::{EntryArgument, ViewArgument};

    fn kernel(object: &str, name: &str) -> &'static Entry {
        let object = code_object::find(object, "gfx942").unwrap();
        object.entries.iter().find(|entry| entry.name == name).unwrap()
    }

    #[test]
    fn arguments_lie_where_the_kernel_reads_them() {
        let view = ViewArgument { codes: 1, scales: 2, stride: 3 };
        let (form, rule, block, width, page_entries) = (4, 5, 6, 7, 8);
        let entry = EntryArgument { form, rule, block, width, page_entries, bytes: 9, entries: 10 };
        let arguments = [
            Argument::View(view),
            Argument::View(view),
            Argument::View(view),
            Argument::Entry(entry),
            Argument::U32(11),
            Argument::U64(12),
        ];
        let store = kernel("kv/store", "kv_store__portable");
        let packed = packed(store, &arguments).unwrap();
        let words = [1, 2, 3, 1, 2, 3, 1, 2, 3, 4 | 5 << 32, 6 | 7 << 32, 8, 9, 10, 11, 12u64];
        assert_eq!(packed, words.map(u64::to_le_bytes).concat());
    }

    #[test]
    fn arguments_of_other_sizes_are_refused() {
        let store = kernel("kv/store", "kv_store__portable");
        for arguments in [&[][..], &[Argument::U64(0); 6]] {
            let error = packed(store, arguments).unwrap_err().to_string();
            assert!(error.contains("kv_store__portable") && error.contains("24"), "{error}");
        }
    }

    #[test]
    fn every_argument_has_the_size_that_the_host_gives_it() {
        let table = [0.0; 256];
        let kinds = [
            Argument::View(ViewArgument::default()),
            Argument::U64(0),
            Argument::U32(0),
            Argument::Entry(EntryArgument {
                form: 0,
                rule: 0,
                block: 0,
                width: 0,
                page_entries: 0,
                bytes: 0,
                entries: 0,
            }),
            Argument::Table(&table),
        ];
        assert!(kinds.iter().all(|kind| kind.bytes().len() == kind.place().1));
        for entry in code_object::all().iter().flat_map(|object| object.entries) {
            assert!(!entry.arguments.is_empty(), "{}", entry.name);
            for (offset, bytes) in entry.arguments {
                let known = kinds.iter().any(|kind| kind.place().1 == *bytes as usize);
                // Words may be any number.
                let words = bytes % 8 == 0 && offset % 8 == 0;
                assert!((known || words) && offset % 4 == 0, "{}: {bytes}", entry.name);
            }
        }
    }
}
