//! The emulator's matrix units against an H200's recorded results.

#[path = "../../tests/products/cases.rs"]
mod cases;

use super::host::OnHost;
use crate::{
    driver::{Argument, Shape},
    launcher::Target,
};
use cases::{Cases, FORMATS, KINDS, results, same};

/// An H200's results, by format.
const RECORDED: [&[u8]; 3] = [
    include_bytes!("../../emu/recorded/e4m3.bin"),
    include_bytes!("../../emu/recorded/bf16.bin"),
    include_bytes!("../../emu/recorded/f16.bin"),
];

#[test]
fn products_have_the_bits_of_an_h200() {
    for (format, recorded) in FORMATS.into_iter().zip(RECORDED) {
        let cases = Cases::of(format);
        let mut after = vec![0f32; cases.c.len()];
        let places = [
            cases.a.as_ptr().expose_provenance(),
            cases.b.as_ptr().expose_provenance(),
            cases.c.as_ptr().expose_provenance(),
            after.as_mut_ptr().expose_provenance(),
        ];
        let arguments = places.map(|place| Argument::U64(place as u64));
        let shape = Shape { shared_bytes: 1024, ..Shape::flat(KINDS.len() as u32, 128) };
        let kernel = format!("probe_products__{}", format.name);
        OnHost.launch(&kernel, &shape, &arguments).unwrap();
        let recorded = results(recorded);
        assert_eq!(after.len(), recorded.len(), "{}", format.name);
        let each = after.len() / KINDS.len();
        let wrong: Vec<_> = KINDS
            .iter()
            .zip(after.chunks(each).zip(recorded.chunks(each)))
            .map(|(kind, (seen, recorded))| {
                let differ = |(a, b): &(&f32, &f32)| !same(**a, **b);
                let first = seen.iter().zip(recorded).find(differ);
                (kind, seen.iter().zip(recorded).filter(differ).count(), first)
            })
            .filter(|(_, differ, _)| *differ > 0)
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", format.name);
    }
}
