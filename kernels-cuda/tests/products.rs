//! The matrix units of a board against their recorded results, which the emulator is held to as well.
//!
//! With `TANDEM_RECORD` naming a folder, results are written there instead.

#![allow(unsafe_code)]

#[path = "products/cases.rs"]
mod cases;
mod gpu;

use cases::{Cases, FORMATS, Format, KINDS, results, same};
use std::{path::Path, sync::Arc};
use tandem_cuda::{
    driver::{Argument, Board, Context, Driver, Module, Queue, Reservation, Shape, Span},
    image,
};

/// What the board makes of a format's cases.
fn multiplied(context: &Arc<Context>, format: Format) -> Vec<f32> {
    let image = image::find("probe/products_sm90", "sm_90a").expect("compiled for Hopper");
    let kernels: Vec<_> = image.entries.iter().map(|e| e.name).collect();
    // SAFETY: an image whose digest was checked.
    let module = unsafe { Module::load(context, &image.unpack().unwrap(), &kernels) }.unwrap();
    let queue = Queue::new(context).unwrap();
    let memory = |bytes: &[u8]| {
        let reserved = Arc::new(Reservation::device(context, bytes.len() as u64).unwrap());
        let span = Span::new(&reserved, 0..bytes.len() as u64).unwrap();
        queue.write(&span, bytes).unwrap();
        span
    };
    let cases = Cases::of(format);
    let before: Vec<u8> = cases.c.iter().flat_map(|c| c.to_le_bytes()).collect();
    let mut after = vec![0; before.len()];
    let spans = [memory(&cases.a), memory(&cases.b), memory(&before), memory(&after)];
    let arguments = spans.each_ref().map(|span| Argument::U64(span.address()));
    let shape = Shape { shared_bytes: 1024, ..Shape::flat(KINDS.len() as u32, 128) };
    let function = module.function(&format!("probe_products__{}", format.name)).unwrap();
    // SAFETY: a block takes its case alone, and there are as many of them as blocks.
    unsafe { queue.launch(function, &shape, &arguments) }.unwrap();
    queue.read(&spans[3], &mut after).unwrap();
    results(&after)
}

#[test]
fn a_board_multiplies_as_recorded() {
    if gpu::device().is_none() {
        return;
    }
    let board = Board::all(Driver::open().unwrap()).unwrap()[0];
    if image::target(board.capability().unwrap()) != Some("sm_90a") {
        println!("SKIPPED cuda: the board's matrix units are not those of Hopper");
        return;
    }
    let context = Context::open(board).unwrap();
    let folder = std::env::var_os("TANDEM_RECORD");
    for (format, recorded) in FORMATS.into_iter().zip(RECORDED) {
        let seen = multiplied(&context, format);
        if let Some(folder) = &folder {
            let bytes: Vec<u8> = seen.iter().flat_map(|x| x.to_le_bytes()).collect();
            std::fs::write(Path::new(folder).join(format!("{}.bin", format.name)), bytes).unwrap();
            continue;
        }
        let recorded = results(recorded);
        let differ = seen.iter().zip(&recorded).filter(|(a, b)| !same(**a, **b)).count();
        assert_eq!((seen.len(), differ), (recorded.len(), 0), "{}", format.name);
    }
}

/// An H200's results, by format.
const RECORDED: [&[u8]; 3] = [
    include_bytes!("../emu/recorded/e4m3.bin"),
    include_bytes!("../emu/recorded/bf16.bin"),
    include_bytes!("../emu/recorded/f16.bin"),
];
