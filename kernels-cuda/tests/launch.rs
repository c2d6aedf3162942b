//! Launch attributes and tensor maps of a board, through the driver layer.

#![allow(unsafe_code)]

mod gpu;

use std::sync::Arc;
use tandem_cuda::{
    driver::{
        Argument, Board, Context, Driver, Module, Queue, Reservation, Shape, Span, TensorMap, Tile,
    },
    image,
};

/// The board, a queue and the kernels of `kernels/probe/launch.cu`.
struct Probe {
    driver: Driver,
    context: Arc<Context>,
    queue: Queue,
    module: Module,
}

impl Probe {
    fn new() -> Option<Probe> {
        gpu::device()?;
        let driver = Driver::open().unwrap();
        let board = Board::all(driver).unwrap()[0];
        let context = Context::open(board).unwrap();
        let target = image::target(board.capability().unwrap()).unwrap();
        let image = image::find("probe/launch", target).unwrap();
        let kernels: Vec<_> = image.entries.iter().map(|e| e.name).collect();
        // SAFETY: an image whose digest was checked.
        let module = unsafe { Module::load(&context, &image.unpack().unwrap(), &kernels) };
        let queue = Queue::new(&context).unwrap();
        Some(Probe { driver, context: context.clone(), queue, module: module.unwrap() })
    }

    fn memory(&self, bytes: u64) -> Span {
        let memory = Arc::new(Reservation::device(&self.context, bytes).unwrap());
        let span = Span::new(&memory, 0..bytes).unwrap();
        self.queue.fill(&span, 0).unwrap();
        span
    }

    fn launch(&self, kernel: &str, shape: &Shape, arguments: &[Argument<'_>]) {
        let function = self.module.function(kernel).unwrap();
        // SAFETY: the callers pass memory of this context that the kernels stay within, and keep it
        // until they have read it back.
        unsafe { self.queue.launch(function, shape, arguments) }.unwrap();
    }

    fn words(&self, from: &Span) -> Vec<u32> {
        let mut bytes = vec![0; from.length()];
        self.queue.read(from, &mut bytes).unwrap();
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

#[test]
fn blocks_find_themselves_in_clusters_of_the_launch() {
    let Some(probe) = Probe::new() else { return };
    let (sizes, ranks) = (probe.memory(64), probe.memory(64));
    let arguments = [Argument::U64(sizes.address()), Argument::U64(ranks.address())];
    for size in [1, 2, 8, 16] {
        let shape = Shape { cluster: Some([size, 1, 1]), ..Shape::flat(16, 32) };
        probe.launch("probe_cluster", &shape, &arguments);
        assert_eq!(probe.words(&sizes), [size; 16]);
        let expected: Vec<u32> = (0..16).map(|block| block % size).collect();
        assert_eq!(probe.words(&ranks), expected);
    }
}

#[test]
fn programmatic_launches_run_in_turn() {
    let Some(probe) = Probe::new() else { return };
    let word = probe.memory(4);
    let shape = Shape { programmatic: true, ..Shape::flat(1, 32) };
    for _ in 0..1000 {
        probe.launch("probe_increment", &shape, &[Argument::U64(word.address())]);
    }
    assert_eq!(probe.words(&word), [1000]);
}

#[test]
fn a_tensor_map_copies_its_box_and_zeros_beyond_the_tensor() {
    let Some(probe) = Probe::new() else { return };
    let (rows, cols, pitch) = (40u64, 100u64, 112u64);
    let from = probe.memory(rows * pitch);
    let bytes: Vec<u8> = (0..rows * pitch).map(|i| (i % 251) as u8 + 1).collect();
    probe.queue.write(&from, &bytes).unwrap();
    let tile = Tile { rows, cols, pitch, box_rows: 16, box_cols: 64, swizzled: false };
    let map = TensorMap::new(probe.driver, &from, &tile).unwrap();
    let to = probe.memory(16 * 64);
    let (column, row) = (48u64, 32u64);
    let arguments = [
        map.argument(),
        Argument::U64(to.address()),
        Argument::I32(column as i32),
        Argument::I32(row as i32),
    ];
    probe.launch("probe_tensor_map", &Shape::flat(1, 128), &arguments);
    let mut seen = vec![0; 16 * 64];
    probe.queue.read(&to, &mut seen).unwrap();
    for (i, byte) in seen.iter().enumerate() {
        let (r, c) = (row + i as u64 / 64, column + i as u64 % 64);
        let inside = r < rows && c < cols;
        let expected = if inside { bytes[(r * pitch + c) as usize] } else { 0 };
        assert_eq!(*byte, expected, "row {r}, column {c}");
    }
    let beyond = Tile { rows: rows + 1, ..tile };
    assert!(TensorMap::new(probe.driver, &from, &beyond).is_err());
}

#[test]
fn arguments_of_another_kernel_are_refused() {
    let Some(probe) = Probe::new() else { return };
    let function = probe.module.function("probe_increment").unwrap();
    for arguments in [vec![], vec![Argument::U32(0)], vec![Argument::U64(0); 2]] {
        // SAFETY: the arguments are refused before anything is launched, which is what is tested.
        let refused = unsafe { probe.queue.launch(function, &Shape::flat(1, 32), &arguments) };
        let failure = refused.unwrap_err();
        assert!(failure.to_string().contains("probe_increment takes [8]"), "{failure}");
    }
    assert!(probe.module.function("probe_none").is_err());
}
