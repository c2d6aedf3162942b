//! Weights onto a device: what arrives, what is refused, and what is reported on the way.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use tandem_engine::weights::{Checkpoint, Content, Files, Module, Progress, Share, Source, load};
use tandem_hal::{Device, Elem, Enc, Place, View};
use tandem_reference::{RefDevice, Setup, Weights};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo");

fn demo() -> Checkpoint {
    Checkpoint::open(&Files::folder(DEMO)).unwrap()
}

fn device(weights: Weights) -> RefDevice {
    RefDevice::with(&Setup { weights, ..Setup::default() })
}

/// One module of one view.
fn load_one(
    device: &dyn Device,
    checkpoint: &Checkpoint,
    share: Share,
    take: impl Fn(&mut Module<'_, '_>) -> tandem_engine::Result<View>,
) -> tandem_engine::Result<View> {
    let source = Source { content: Content::Checkpoint(checkpoint), share, tables: Place::Device };
    load(device, &source, &mut |_| {}, |loader| loader.module("module", &take))
}

fn bytes_of(checkpoint: &Checkpoint, name: &str) -> Vec<u8> {
    checkpoint.tensor(name).unwrap().read().unwrap()
}

fn read(device: &dyn Device, view: &View) -> Vec<u8> {
    device.stream().unwrap().read(view).unwrap()
}

#[test]
fn tensors_arrive_codes_then_scales() {
    let (device, checkpoint) = (device(Weights::Plain), demo());
    let take = |module: &mut Module<'_, '_>| module.mxfp8("layers.3.attn.wq_b", 2048, 64);
    let view = load_one(&device, &checkpoint, Share::WHOLE, take).unwrap();
    let mut bytes = bytes_of(&checkpoint, "layers.3.attn.wq_b.weight");
    bytes.extend(bytes_of(&checkpoint, "layers.3.attn.wq_b.scale"));
    assert_eq!(read(&device, &view), bytes);
}

#[test]
fn packed_weights_unpack_to_what_the_file_has() {
    let checkpoint = demo();
    for weights in [Weights::Expanded, Weights::Scrambled] {
        let device = device(weights);
        let take = |module: &mut Module<'_, '_>| {
            module.experts(|e| format!("layers.0.ffn.experts.{e}.w1"), 0..16, 64, 256)
        };
        let view = load_one(&device, &checkpoint, Share::WHOLE, take).unwrap();
        let on = device.stream().unwrap();
        for expert in [0, 7, 15] {
            let room = View::reserved_bytes(Enc::MXFP4, &[64, 256]);
            let plain = device.allocate(room, Place::Device, "plain").unwrap();
            let plain = View::dense(&plain, 0, Enc::MXFP4, &[64, 256]).unwrap();
            device.unpack(&view.part(expert).unwrap(), &plain, on.as_ref()).unwrap();
            let name = |what| format!("layers.0.ffn.experts.{expert}.w1.{what}");
            let mut bytes = bytes_of(&checkpoint, &name("weight"));
            bytes.extend(bytes_of(&checkpoint, &name("scale")));
            assert_eq!(on.read(&plain).unwrap(), bytes, "{weights:?} expert {expert}");
        }
    }
}

#[test]
fn ranks_hold_their_rows_and_experts() {
    let (device, checkpoint) = (device(Weights::Plain), demo());
    let (whole, share) = (bytes_of(&checkpoint, "head.weight"), Share::new(1, 4).unwrap());
    let rows = share.of("vocab_size", 2048).unwrap();
    let take = |module: &mut Module<'_, '_>| {
        let rows = module.share().of("vocab_size", 2048)?;
        module.dense_rows("head.weight", Elem::Bf16, [2048, 256], rows)
    };
    let view = load_one(&device, &checkpoint, share, take).unwrap();
    let part = rows.start as usize * 512..rows.end as usize * 512;
    assert_eq!(read(&device, &view), whole[part]);
    let take = |module: &mut Module<'_, '_>| {
        let held = module.share().of("routed experts", 16)?;
        module.experts(|e| format!("layers.2.ffn.experts.{e}.w2"), held, 256, 64)
    };
    let view = load_one(&device, &checkpoint, share, take).unwrap();
    assert_eq!(view.shape(), [4, 256, 64]);
    let bytes = read(&device, &view);
    for (part, expert) in (4..8).enumerate() {
        let codes = bytes_of(&checkpoint, &format!("layers.2.ffn.experts.{expert}.w2.weight"));
        assert_eq!(bytes[part * codes.len()..][..codes.len()], codes);
    }
}

#[test]
fn tables_are_read_and_progress_reaches_the_end() {
    let (device, checkpoint) = (device(Weights::Expanded), demo());
    let source = Source {
        content: Content::Checkpoint(&checkpoint),
        share: Share::WHOLE,
        tables: Place::Device,
    };
    let seen = RefCell::new(Vec::<Progress>::new());
    let view = load(&device, &source, &mut |p| seen.borrow_mut().push(p), |loader| {
        loader.module("trunk", |m| m.plain("norm.weight", Elem::Bf16, &[256]))?;
        loader.table("layers.1.engram.table", "layers.1.engram.embed", 9210, 64)
    })
    .unwrap();
    let mut bytes = bytes_of(&checkpoint, "layers.1.engram.embed.weight");
    bytes.extend(bytes_of(&checkpoint, "layers.1.engram.embed.scale"));
    assert_eq!(read(&device, &view), bytes);
    let seen = seen.into_inner();
    let total = 512 + 9210 * 66;
    assert!(seen.iter().all(|p| p.total_bytes == total));
    assert!(seen.windows(2).all(|pair| pair[0].done_bytes <= pair[1].done_bytes));
    assert_eq!((seen[0].done_bytes, seen.last().unwrap().done_bytes), (0, total));
    let lines = device.ledger();
    assert!(lines.iter().any(|line| line.purpose == "layers.1.engram.table"));
}

/// The demo with one byte of a tensor changed.
fn damaged(name: &str, at: u64, bytes: &[u8]) -> (tempfile::TempDir, Checkpoint) {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(DEMO).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let files = Files::folder(folder.path());
    let checkpoint = Checkpoint::open(&files).unwrap();
    let tensor = checkpoint.tensor(name).unwrap();
    let path = folder.path().join(tensor.file());
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, tensor.offset() + at).unwrap();
    (folder, Checkpoint::open(&files).unwrap())
}

/// A tensor long enough for several readers, in a checkpoint of its own.
#[test]
fn long_reads_are_shared_among_threads() {
    let (rows, columns) = (4096_u64, 512_u64);
    let mut bytes: Vec<u8> = (0..rows * columns).flat_map(|i| [(i % 251) as u8, 0x3f]).collect();
    let header = format!(
        "{{\"table\":{{\"dtype\":\"BF16\",\"shape\":[{rows},{columns}],\"data_offsets\":[0,{}]}}}}",
        bytes.len()
    );
    let folder = tempfile::tempdir().unwrap();
    let write = |bytes: &[u8]| {
        let length = (header.len() as u64).to_le_bytes();
        let file = [&length[..], header.as_bytes(), bytes].concat();
        fs::write(folder.path().join("model.safetensors"), file).unwrap();
        Checkpoint::open(&Files::folder(folder.path())).unwrap()
    };
    let device = device(Weights::Expanded);
    let take = |module: &mut Module<'_, '_>| module.plain("table", Elem::Bf16, &[rows, columns]);
    let view = load_one(&device, &write(&bytes), Share::WHOLE, take).unwrap();
    assert_eq!(read(&device, &view), bytes);
    // Two bad elements in two readers' parts: the first one is named.
    for at in [3_500_000, 2_000_000] {
        bytes[at..at + 2].copy_from_slice(&[0xc0, 0x7f]);
    }
    let error = load_one(&device, &write(&bytes), Share::WHOLE, take).unwrap_err().to_string();
    assert!(error.contains("tensor table: NaN weights: NaN at byte 2000000;"), "{error}");
}

#[test]
fn nan_weights_are_refused_with_their_tensor() {
    let device = device(Weights::Expanded);
    type Take = fn(&mut Module<'_, '_>) -> tandem_engine::Result<View>;
    let wq_b: Take = |module| module.mxfp8("layers.3.attn.wq_b", 2048, 64);
    let w3: Take =
        |module| module.experts(|e| format!("layers.0.ffn.experts.{e}.w3"), 0..16, 64, 256);
    let norm: Take = |module| module.plain("norm.weight", Elem::Bf16, &[256]);
    let mixes: Take = |module| module.dense("layers.0.hc_attn_fn", Elem::F32, [24, 1024]);
    for (name, at, bytes, take, fault) in [
        ("layers.3.attn.wq_b.weight", 70, &[0x7f][..], wq_b, "NaN at byte 70"),
        ("layers.3.attn.wq_b.weight", 131_071, &[0xff], wq_b, "NaN at byte 131071"),
        ("layers.3.attn.wq_b.scale", 3, &[0xff], wq_b, "NaN scale at byte 3"),
        ("layers.3.attn.wq_b.scale", 0, &[0xfe], wq_b, "overflowing scale at byte 0"),
        ("layers.0.ffn.experts.9.w3.scale", 8, &[0xff], w3, "NaN scale at byte 8"),
        ("norm.weight", 2, &[0xc0, 0x7f], norm, "NaN at byte 2"),
        ("norm.weight", 4, &[0x80, 0xff], norm, "infinity at byte 4"),
        ("layers.0.hc_attn_fn", 8, &[0, 0, 0xc0, 0x7f], mixes, "NaN at byte 8"),
    ] {
        let (_folder, checkpoint) = damaged(name, at, bytes);
        let error = load_one(&device, &checkpoint, Share::WHOLE, take).unwrap_err();
        let message = error.to_string();
        assert_eq!(message.lines().count(), 1);
        let expected = format!("tensor {name}: NaN weights: {fault}");
        assert!(message.contains(&expected), "{message}");
        assert!(error.is_caller_mistake());
    }
}
