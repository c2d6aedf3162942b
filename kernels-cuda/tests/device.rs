//! Memory, streams, graphs and tickets of a board, through the contract.

mod gpu;

use std::{io::Write as _, time::Duration};
use tandem_hal::{
    Device, Embed, EmbedIo, Enc, Error, Extents, Lane, Place, Plan, Result, Stream, Sym, View, Want,
};

const WIDTH: u64 = 64;
const VOCAB: u64 = 1000;

/// A dense view of its own.
fn view(device: &dyn Device, enc: Enc, shape: &[u64]) -> View {
    let bytes = View::reserved_bytes(enc, shape);
    let memory = device.allocate(bytes, Place::Device, "test").unwrap();
    View::dense(&memory, 0, enc, shape).unwrap()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Embedding of `tokens` ids, with its operands.
struct Work {
    plan: Plan<Embed>,
    id: View,
    table: View,
    y: View,
}

impl Work {
    fn new(device: &dyn Device, tokens: u64) -> Work {
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, tokens)]));
        let plan = device.plan(Embed { vocab: VOCAB, width: WIDTH }, &want).unwrap();
        Work {
            plan,
            id: view(device, Enc::I32, &[tokens]),
            table: view(device, Enc::BF16, &[VOCAB, WIDTH]),
            y: view(device, Enc::BF16, &[tokens, WIDTH]),
        }
    }

    /// Fill the table, and ask for one row everywhere.
    fn load(&self, on: &dyn Stream, row: i32) {
        on.write(&self.table, &bytes((VOCAB * WIDTH * 2) as usize)).unwrap();
        let ids: Vec<u8> = (0..self.id.shape()[0]).flat_map(|_| row.to_le_bytes()).collect();
        on.write(&self.id, &ids).unwrap();
    }

    fn launch(&self, on: &dyn Stream) -> Result<()> {
        let workspace = View::absent(Enc::U8);
        let io = EmbedIo { id: &self.id, table: &self.table, y: &self.y };
        Lane { stream: on, workspace: &workspace, side: None }.run(&self.plan, io)
    }

    fn expected(&self, row: usize) -> Vec<u8> {
        let one = (WIDTH * 2) as usize;
        bytes((VOCAB * WIDTH * 2) as usize)[row * one..][..one].repeat(self.id.shape()[0] as usize)
    }
}

#[test]
fn bytes_come_back_as_they_were_written() {
    let Some(device) = gpu::device() else { return };
    let stream = device.stream().unwrap();
    // Nothing, one byte, and more than all slots of the pinned ring.
    for count in [0, 1, 4097, 70 << 20] {
        let to = view(&*device, Enc::U8, &[count]);
        let written = bytes(count as usize);
        stream.write(&to, &written).unwrap();
        assert!(stream.read(&to).unwrap() == written, "{count} bytes");
        let ticket = stream.read_later(&to).unwrap();
        assert!(ticket.wait().unwrap() == written, "{count} bytes later");
        stream.fill(&to, 0xA5).unwrap();
        assert!(stream.read(&to).unwrap().iter().all(|b| *b == 0xA5));
    }
    let scaled = view(&*device, Enc::Q8, &[3, 64]);
    let written = bytes(scaled.bytes() as usize);
    stream.write(&scaled, &written).unwrap();
    assert_eq!(stream.read(&scaled).unwrap(), written);
    let error = stream.write(&scaled, &written[1..]).unwrap_err();
    assert!(matches!(error, Error::BadOperand { operand: "bytes", .. }), "{error}");
}

#[test]
fn reservations_are_in_the_ledger_while_they_live() {
    let Some(device) = gpu::device() else { return };
    let memory = device.allocate(1 << 20, Place::Device, "weights").unwrap();
    let pinned = device.allocate(4096, Place::Pinned, "ids").unwrap();
    let lines = device.ledger();
    assert_eq!((lines[0].purpose.as_str(), lines[0].bytes), ("weights", 1 << 20));
    assert_eq!((lines[1].purpose.as_str(), lines[1].place), ("ids", Place::Pinned));
    let all = device.info().memory_bytes;
    let error = device.allocate(all, Place::Device, "too much").unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    drop((memory, pinned));
    assert_eq!(device.ledger(), []);
}

#[test]
fn kernels_read_pinned_memory_and_mapped_files() {
    let Some(device) = gpu::device() else { return };
    let stream = device.stream().unwrap();
    let table_bytes = bytes((VOCAB * WIDTH * 2) as usize);
    // An odd place in the file, so that the mapping starts before what was asked for.
    let offset = 70_002u64;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![0xEE; offset as usize]).unwrap();
    file.write_all(&table_bytes).unwrap();
    let pinned = device.allocate(table_bytes.len() as u64, Place::Pinned, "table").unwrap();
    let mapped = device.map(&file, offset, table_bytes.len() as u64, "table").unwrap();
    for memory in [pinned, mapped] {
        let place = memory.place;
        let table = View::dense(&memory, 0, Enc::BF16, &[VOCAB, WIDTH]).unwrap();
        let work = Work { table: table.clone(), ..Work::new(&*device, 5) };
        if place == Place::Pinned {
            work.load(&*stream, 7);
        } else {
            let ids: Vec<u8> = (0..5).flat_map(|_| 7i32.to_le_bytes()).collect();
            stream.write(&work.id, &ids).unwrap();
            let error = stream.write(&table, &table_bytes).unwrap_err();
            assert!(matches!(error, Error::BadOperand { .. }), "{error}");
        }
        work.launch(&*stream).unwrap();
        assert!(stream.read(&work.y).unwrap() == work.expected(7), "{place:?}");
        assert!(stream.read(&table).unwrap() == table_bytes, "{place:?}");
    }
    let beyond = device.map(&file, offset, table_bytes.len() as u64 + 1, "table").unwrap_err();
    assert!(beyond.to_string().ends_with("read table by position"), "{beyond}");
}

#[test]
fn graphs_hold_their_memory_and_run_with_the_data_of_the_moment() {
    let Some(device) = gpu::device() else { return };
    let (stream, side) = (device.stream().unwrap(), device.stream().unwrap());
    let work = Work::new(&*device, 33);
    let second = Work::new(&*device, 33);
    second.load(&*stream, 3);
    work.load(&*stream, 1);
    stream.fill(&work.y, 0xFF).unwrap();
    let graph = stream
        .capture(&mut || {
            side.wait(&*stream)?;
            second.launch(&*side)?;
            work.launch(&*stream)?;
            // A fork may wait for its origin again.
            side.wait(&*stream)?;
            second.launch(&*side)?;
            stream.wait(&*side)
        })
        .unwrap();
    assert_eq!(graph.nodes(), 3);
    assert!(stream.read(&work.y).unwrap().iter().all(|b| *b == 0xFF), "capture ran something");
    for row in [1, 2] {
        work.load(&*stream, row);
        stream.replay(&*graph).unwrap();
        assert!(stream.read(&work.y).unwrap() == work.expected(row as usize));
        assert!(stream.read(&second.y).unwrap() == second.expected(3));
    }
    // The side stream is free again, and the graph outlives its operands.
    second.launch(&*side).unwrap();
    side.sync().unwrap();
    let y = work.y.clone();
    drop((work, second));
    assert!(device.ledger().len() >= 6);
    stream.fill(&y, 0).unwrap();
    stream.replay(&*graph).unwrap();
    assert!(stream.read(&y).unwrap().iter().any(|b| *b != 0));
    drop((graph, y));
    assert_eq!(device.ledger(), []);
}

#[test]
fn a_capture_that_goes_wrong_leaves_its_streams_free() {
    let Some(device) = gpu::device() else { return };
    let (stream, side) = (device.stream().unwrap(), device.stream().unwrap());
    let work = Work::new(&*device, 4);
    work.load(&*stream, 2);
    let unjoined = stream.capture(&mut || {
        side.wait(&*stream)?;
        work.launch(&*side)
    });
    let refused = |outcome: Result<_>| outcome.map(|_: Box<dyn tandem_hal::Graph>| ()).unwrap_err();
    assert!(matches!(refused(unjoined), Error::NotWhileCapturing { .. }));
    let failed = stream.capture(&mut || {
        work.launch(&*stream)?;
        stream.sync()
    });
    assert_eq!(refused(failed), Error::NotWhileCapturing { what: "sync" });
    let outside = stream.capture(&mut || stream.wait(&*side));
    assert!(matches!(refused(outside), Error::NotWhileCapturing { .. }));
    for stream in [&stream, &side] {
        work.launch(&**stream).unwrap();
        stream.sync().unwrap();
    }
    assert!(stream.read(&work.y).unwrap() == work.expected(2));
}

#[test]
fn streams_wait_for_each_other_and_tickets_tell_the_time() {
    let Some(device) = gpu::device() else { return };
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let to = view(&*device, Enc::U8, &[256 << 20]);
    let start = first.mark().unwrap();
    for byte in 0..8 {
        first.fill(&to, byte).unwrap();
    }
    let end = first.mark().unwrap();
    second.wait(&*first).unwrap();
    let seen = second.read(&to).unwrap();
    assert!(seen.iter().all(|b| *b == 7));
    assert!(end.ready().unwrap());
    let took = end.since(&*start).unwrap();
    assert!(took > Duration::ZERO && took < Duration::from_secs(1), "{took:?}");
    assert_eq!(end.wait().unwrap(), Vec::<u8>::new());
}

#[test]
fn memory_is_dropped_while_work_is_in_flight() {
    let Some(device) = gpu::device() else { return };
    let stream = device.stream().unwrap();
    for _ in 0..50 {
        let work = Work::new(&*device, 4096);
        work.load(&*stream, 9);
        work.launch(&*stream).unwrap();
        drop(work);
    }
    stream.sync().unwrap();
    assert_eq!(device.ledger(), []);
}
