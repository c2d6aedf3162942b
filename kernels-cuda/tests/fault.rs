//! A device fault names what was launched last. A program of its own: a fault ends the process's context.

#![allow(unsafe_code)]

mod gpu;

use tandem_cuda::{
    driver::{Board, Context, Driver, Module, Queue, Shape},
    image,
};
use tandem_hal::{Embed, EmbedIo, Enc, Error, Extents, Lane, Place, Sym, View, Want};

/// Write where no memory is, in the context that the device has as well.
fn fault() {
    let board = Board::all(Driver::open().unwrap()).unwrap()[0];
    let context = Context::open(board).unwrap();
    let target = image::target(board.capability().unwrap()).unwrap();
    let image = image::find("probe/launch", target).unwrap();
    // SAFETY: an image whose digest was checked.
    let module = unsafe { Module::load(&context, &image.unpack().unwrap(), &["probe_fault"]) };
    let (module, queue) = (module.unwrap(), Queue::new(&context).unwrap());
    let function = module.function("probe_fault").unwrap();
    // SAFETY: it faults, which is what is tested; it can write nothing that exists.
    unsafe { queue.launch(function, &Shape::flat(1, 1), &[]) }.unwrap();
    let failure = queue.synchronise().unwrap_err();
    assert!(failure.is_fault(), "{failure}");
}

#[test]
fn a_fault_names_the_operator_launched_last_and_loses_the_device() {
    let Some(device) = gpu::device() else { return };
    let stream = device.stream().unwrap();
    let view = |enc, shape: &[u64]| {
        let bytes = View::reserved_bytes(enc, shape);
        let memory = device.allocate(bytes, Place::Device, "test").unwrap();
        View::dense(&memory, 0, enc, shape).unwrap()
    };
    let (id, table) = (view(Enc::I32, &[4]), view(Enc::BF16, &[8, 16]));
    let y = view(Enc::BF16, &[4, 16]);
    stream.fill(&id, 0).unwrap();
    let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 4)]));
    let plan = device.plan(Embed { vocab: 8, width: 16 }, &want).unwrap();
    let workspace = View::absent(Enc::U8);
    let lane = Lane { stream: &*stream, workspace: &workspace, side: None };
    let io = || EmbedIo { id: &id, table: &table, y: &y };
    lane.run(&plan, io()).unwrap();
    stream.sync().unwrap();
    fault();
    let last_op = "rows.embed{vocab=8,width=16}".to_string();
    let lost = Error::DeviceLost { last_op };
    assert_eq!(stream.sync().unwrap_err(), lost);
    assert_eq!(stream.read(&y).unwrap_err(), lost);
    assert_eq!(lane.run(&plan, io()).unwrap_err(), lost);
    assert_eq!(device.allocate(1, Place::Device, "test").unwrap_err(), lost);
    assert_eq!(device.stream().map(|_| ()).unwrap_err(), lost);
}
