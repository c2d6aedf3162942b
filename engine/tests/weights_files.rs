//! Checkpoint files: headers, shards and the index, whole and broken.

use std::fs;
use std::io;
use std::sync::Mutex;
use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};
use tandem_engine::weights::{Checkpoint, Dtype, Files, ReadAt, header};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo");

/// Bytes that remember the largest read asked of them.
struct Watched {
    bytes: Vec<u8>,
    largest: Mutex<usize>,
}

impl Watched {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, largest: Mutex::new(0) }
    }
}

impl ReadAt for Watched {
    fn length_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut largest = self.largest.lock().unwrap();
        *largest = into.len().max(*largest);
        let start = offset as usize;
        let bytes =
            self.bytes.get(start..start + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

/// A file with this header text and this many data bytes.
fn file(header: &str, data_bytes: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data_bytes, 0);
    bytes
}

fn read(bytes: Vec<u8>) -> Result<Vec<header::Entry>, String> {
    let length = bytes.len();
    let source = Watched::new(bytes);
    let entries = header::read("x.safetensors", &source).map_err(|error| {
        let message = error.to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.starts_with("x.safetensors: "), "{message}");
        message
    });
    assert!(*source.largest.lock().unwrap() <= length, "no buffer is longer than the file");
    entries
}

#[test]
fn c082_header_length() {
    let good = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let size = file(good, 4).len() as u64;
    let begin = Instant::now();
    for length in [0, 1, size, size + 1, 100_000_001, 1 << 31, 1 << 63, u64::MAX] {
        let mut bytes = file(good, 4);
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        let message = read(bytes).unwrap_err();
        assert!(message.contains(&length.to_string()), "{message}");
        let over = length > header::HEADER_LIMIT_BYTES;
        assert_eq!(message.contains("exceeds the limit of 100000000"), over, "{message}");
    }
    assert!(read(vec![1; 7]).unwrap_err().contains("7 bytes are too few"));
    assert!(read(Vec::new()).unwrap_err().contains("0 bytes are too few"));
    assert!(begin.elapsed().as_secs_f64() < 1.0);
    let padded = read(file(&format!("{good}      "), 4)).unwrap();
    assert_eq!((padded[0].offset, padded[0].length_bytes), (8 + 54 + 6, 4));
    assert!(read(file(&format!("  {good}"), 4)).unwrap_err().contains("does not start"));
}

/// One tensor named `w` with these fields.
fn one(dtype: &str, shape: &str, offsets: &str, data_bytes: usize) -> Result<(), String> {
    let header =
        format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#);
    read(file(&header, data_bytes)).map(|_| ())
}

#[test]
fn c083_offsets_and_shapes() {
    for (dtype, shape, offsets, data_bytes) in [
        ("F32", "[1]", "[8,4]", 8),
        ("F32", "[1]", "[0]", 4),
        ("F32", "[1]", "[]", 4),
        ("F32", "[1]", "[0,4,8]", 4),
        ("F32", "[2]", "[0,8]", 4),
        ("F32", "[1]", "[-1,4]", 4),
        ("F32", "[2,2]", "[0,8]", 8),
        ("F32", "[4294967296,4294967296]", "[0,8]", 8),
        ("F32", "[4611686018427387904,4]", "[0,0]", 0),
        ("F32", "[-1]", "[0,4]", 4),
        ("F32", "[1.5]", "[0,4]", 4),
        ("F31", "[1]", "[0,4]", 4),
        ("F4", "[3]", "[0,1]", 1),
    ] {
        let message = one(dtype, shape, offsets, data_bytes).unwrap_err();
        assert!(message.contains("tensor w"), "{dtype} {shape} {offsets}: {message}");
    }
    one("F32", "[0]", "[0,0]", 0).unwrap();
    one("F32", "[0,18446744073709551615,18446744073709551615]", "[0,0]", 0).unwrap();
    one("F32", "[]", "[0,4]", 4).unwrap();
    one("F8_E8M0", "[2,2]", "[0,4]", 4).unwrap();
    one("F8_E4M3", "[2,2]", "[0,4]", 4).unwrap();
    one("F4", "[2,2]", "[0,2]", 2).unwrap();
    let missing = read(file(r#"{"w":{"dtype":"F32","shape":[1]}}"#, 4)).unwrap_err();
    assert!(missing.contains("tensor w") && missing.contains("data_offsets"), "{missing}");
}

/// F32 tensors of one element at these offsets.
fn at(places: &[(&str, u64)], data_bytes: usize) -> Result<(), String> {
    let entries: Vec<_> = places
        .iter()
        .map(|(name, begin)| {
            let offsets = [*begin, begin + 4];
            format!(r#""{name}":{}"#, json!({"dtype":"F32","shape":[1],"data_offsets":offsets}))
        })
        .collect();
    read(file(&format!("{{{}}}", entries.join(",")), data_bytes)).map(|_| ())
}

#[test]
fn c088_holes_overlaps_and_trailing_bytes() {
    assert!(at(&[("a", 0), ("b", 8)], 12).unwrap_err().contains("tensor b: begins at 8 where 4"));
    assert!(at(&[("a", 0), ("b", 2)], 6).unwrap_err().contains("overlaps another tensor"));
    assert!(at(&[("a", 4)], 8).unwrap_err().contains("leaves a hole"));
    assert!(at(&[("a", 0)], 8).unwrap_err().contains("4 bytes after the last tensor"));
    assert!(at(&[("a", 0), ("b", 4)], 6).unwrap_err().contains("it is truncated"));
    at(&[("b", 4), ("a", 0)], 8).unwrap();
    for metadata in [r#"{"format":1}"#, r#"{"format":null}"#, "[]", r#"{"a":"x","a":"y"}"#] {
        let message = read(file(&format!(r#"{{"__metadata__":{metadata}}}"#), 0)).unwrap_err();
        assert!(message.contains("__metadata__"), "{message}");
    }
    read(file(r#"{"__metadata__":{"format":"pt"}}"#, 0)).unwrap();
}

#[test]
fn doubled_keys_are_refused() {
    assert!(at(&[("a", 0), ("a", 0)], 4).unwrap_err().contains("named twice"));
    let twice = r#"{"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    assert!(read(file(twice, 4)).unwrap_err().contains("tensor w: duplicate field"));
    let extra = r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}}"#;
    assert!(read(file(extra, 4)).unwrap_err().contains("unknown field"));
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(bytes);
    }

    #[test]
    fn any_header_text_gives_an_answer(text in "[\\[\\]{}:,\"a-z0-9_.\\-]{0,120}", data in 0_usize..64) {
        let _ = read(file(&text, data));
        let _ = read(file(&format!("{{{text}}}"), data));
    }

    #[test]
    fn any_entry_that_loads_lies_in_the_file(
        dtype in prop::sample::select(vec!["F32", "BF16", "I8", "F4", "F8_E8M0", "X"]),
        shape in prop::collection::vec(prop_oneof![0_u64..9, any::<u64>()], 0..4),
        offsets in prop::array::uniform2(prop_oneof![0_u64..80, any::<u64>()]),
        data in 0_usize..80,
    ) {
        let header = json!({"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}});
        let bytes = file(&header.to_string(), data);
        let length = bytes.len() as u64;
        if let Ok(entries) = read(bytes) {
            for entry in entries {
                prop_assert!(entry.offset + entry.length_bytes <= length);
                prop_assert_eq!(Some(entry.length_bytes), entry.dtype.bytes(&entry.shape));
            }
        }
    }

    #[test]
    fn a_bent_demo_header_gives_an_answer(place in 0_usize..2696, byte in any::<u8>()) {
        let mut bytes = fs::read(format!("{DEMO}/model-00001-of-00005.safetensors")).unwrap();
        bytes[place] = byte;
        let _ = read(bytes);
    }
}

#[test]
fn the_demo_opens() {
    let checkpoint = Checkpoint::open(&Files::folder(DEMO)).unwrap();
    assert_eq!(checkpoint.tensor_count(), 1442);
    assert_eq!(checkpoint.shards().count(), 5);
    assert!(checkpoint.stray_files().is_empty());
    let total: u64 = checkpoint.tensors().map(|tensor| tensor.length_bytes()).sum();
    assert_eq!(total, 21_191_028);
    let norm = checkpoint.tensor("norm.weight").unwrap();
    assert_eq!((norm.dtype(), norm.shape()), (Dtype::Bf16, &[256][..]));
    let whole = norm.read().unwrap();
    let mut part = [0; 6];
    norm.read_at(10, &mut part).unwrap();
    assert_eq!(part, whole[10..16]);
    assert!(norm.read_at(507, &mut part).unwrap_err().to_string().contains("leave its 512"));
    assert!(checkpoint.tensor("model.norm.weight").is_none());
}

/// A copy of the demo's files that a test may break.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(DEMO).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

const SHARD_5: &str = "model-00005-of-00005.safetensors";

fn refused(folder: &tempfile::TempDir) -> String {
    let error = Checkpoint::open(&Files::folder(folder.path())).err().expect("it is refused");
    let message = error.to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// Rewrites the index through `change`.
fn edit_index(folder: &tempfile::TempDir, change: impl FnOnce(&mut Value)) {
    let path = folder.path().join("model.safetensors.index.json");
    let mut index: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut index["weight_map"]);
    fs::write(path, index.to_string()).unwrap();
}

#[test]
fn c084_a_shard_is_missing() {
    let folder = copy();
    fs::remove_file(folder.path().join(SHARD_5)).unwrap();
    let message = refused(&folder);
    assert_eq!(
        message,
        "checkpoint: shards missing: model-00005-of-00005.safetensors (12 tensors); \
         take config.json and every shard from one release"
    );
}

#[test]
fn links_to_themselves_are_not_called_missing() {
    for name in [SHARD_5, "model.safetensors.index.json"] {
        let folder = copy();
        let path = folder.path().join(name);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(name, path).unwrap();
        let message = refused(&folder);
        assert!(message.starts_with(&format!("{name}: a link that cannot be")), "{message}");
        assert!(message.ends_with("; put the file itself in its place"), "{message}");
    }
}

#[test]
fn c084_a_tensor_is_missing_from_its_shard() {
    let folder = copy();
    edit_index(&folder, |map| map["layers.99.ghost"] = json!(SHARD_5));
    let message = refused(&folder);
    assert!(message.contains("missing from their shard: layers.99.ghost (due in"), "{message}");
}

#[test]
fn c084_a_tensor_is_in_no_index() {
    let folder = copy();
    edit_index(&folder, |map| {
        map.as_object_mut().unwrap().remove("norm.weight");
    });
    assert!(refused(&folder).contains("tensors not in the index: norm.weight (in"));
}

#[test]
fn c084_a_tensor_is_in_two_shards() {
    let folder = copy();
    let double = file(
        r#"{"norm.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"z":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
        8,
    );
    fs::write(folder.path().join("model-00006.safetensors"), double).unwrap();
    // Beside the index it is only reported; named by the index it must not repeat a tensor.
    let opened = Checkpoint::open(&Files::folder(folder.path())).unwrap();
    assert_eq!(opened.stray_files(), ["model-00006.safetensors"]);
    edit_index(&folder, |map| map["z"] = json!("model-00006.safetensors"));
    let message = refused(&folder);
    assert!(message.contains("tensors doubled: norm.weight (in model-0000"), "{message}");
}

#[test]
fn c084_the_index_points_outside() {
    for path in ["../x.safetensors", "/etc/passwd", "sub/x.safetensors", ".."] {
        let folder = copy();
        edit_index(&folder, |map| map["norm.weight"] = json!(path));
        let message = refused(&folder);
        assert!(message.contains("no plain file name"), "{message}");
    }
}

#[test]
fn an_index_must_be_one() {
    let folder = copy();
    let path = folder.path().join("model.safetensors.index.json");
    for text in ["", "{}", r#"{"weight_map":{"a":1}}"#, r#"{"weight_map":{"a":"b","a":"b"}}"#] {
        fs::write(&path, text).unwrap();
        assert!(refused(&folder).contains("bad index"), "{text}");
    }
    fs::remove_file(&path).unwrap();
    assert!(refused(&folder).contains("neither model.safetensors.index.json nor"));
}

#[test]
fn a_truncated_shard_is_refused() {
    let folder = copy();
    let path = folder.path().join(SHARD_5);
    let length = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length - 1).unwrap();
    assert!(refused(&folder).contains("it is truncated"));
}

#[test]
fn c050_rows_far_beyond_32_bits() {
    const ROWS: u64 = 384_006_168;
    let header = json!({
        "layers.1.engram.embed.weight":
            {"dtype": "F8_E4M3", "shape": [ROWS, 256], "data_offsets": [0, ROWS * 256]},
        "layers.1.engram.embed.scale":
            {"dtype": "F8_E8M0", "shape": [ROWS, 8], "data_offsets": [ROWS * 256, ROWS * 264]},
    });
    let folder = tempfile::tempdir().unwrap();
    let head = file(&header.to_string(), 0);
    let data = head.len() as u64;
    let path = folder.path().join("model.safetensors");
    fs::write(&path, &head).unwrap();
    let sparse = fs::OpenOptions::new().write(true).open(&path).unwrap();
    if let Err(error) = sparse.set_len(data + ROWS * 264) {
        println!("SKIPPED: no sparse file of 101 GB here: {error}");
        return;
    }
    use std::os::unix::fs::FileExt;
    for row in [0, 16_777_216, ROWS - 1] {
        sparse.write_all_at(&row.to_le_bytes(), data + row * 256).unwrap();
        sparse.write_all_at(&(row + 1).to_le_bytes(), data + ROWS * 256 + row * 8).unwrap();
    }
    let checkpoint = Checkpoint::open(&Files::folder(folder.path())).unwrap();
    let table = checkpoint.tensor("layers.1.engram.embed.weight").unwrap();
    let scale = checkpoint.tensor("layers.1.engram.embed.scale").unwrap();
    assert_eq!(table.length_bytes(), 98_305_579_008);
    for (row, offset) in [
        (8_388_607, 2_147_483_392),
        (8_388_608, 2_147_483_648),
        (16_777_216, 4_294_967_296),
        (384_006_167, 98_305_578_752),
    ] {
        assert_eq!(table.row_bytes(row).unwrap(), offset..offset + 256);
        assert_eq!(scale.row_bytes(row).unwrap(), row * 8..row * 8 + 8);
    }
    assert!(table.row_bytes(ROWS).unwrap_err().to_string().contains("row 384006168 of 384006168"));
    for row in [0, 16_777_216, ROWS - 1] {
        let mut bytes = [0; 8];
        table.read_at(table.row_bytes(row).unwrap().start, &mut bytes).unwrap();
        assert_eq!(u64::from_le_bytes(bytes), row);
        scale.read_at(scale.row_bytes(row).unwrap().start, &mut bytes).unwrap();
        assert_eq!(u64::from_le_bytes(bytes), row + 1);
    }
    assert!(table.read_at(98_305_579_008 - 4, &mut [0; 8]).is_err());
}

#[test]
fn checkpoints_are_alike_as_long_as_their_tensors_and_texts_are() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(DEMO).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let likeness = |folder: &str, texts: &[&str]| {
        let texts: Vec<_> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Checkpoint::open(&Files::folder(folder)).unwrap().likeness(&texts).unwrap()
    };
    let copy = folder.path().to_str().unwrap();
    let original = likeness(DEMO, &["a", "b"]);
    assert_eq!((likeness(copy, &["a", "b"]), original.len()), (original.clone(), 32));
    assert_ne!(likeness(copy, &["ab", ""]), original);
    // One byte in the middle of one tensor.
    let files = Files::folder(copy);
    let checkpoint = Checkpoint::open(&files).unwrap();
    let tensor = checkpoint.tensors().last().unwrap();
    let path = folder.path().join(tensor.file());
    let mut bytes = fs::read(&path).unwrap();
    bytes[(tensor.offset() + tensor.length_bytes() / 2) as usize] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_ne!(likeness(copy, &["a", "b"]), original);
}
