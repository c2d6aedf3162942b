//! Pixels and spans against recorded ones, bit for bit.

use std::ops::Range;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tandem_engine::vision::{
    DecodeLimits, PatchMatrix, Picture, PictureInput, PictureLimits, TargetSize, fit,
};

const RELEASED: PictureLimits = PictureLimits {
    patch: 14,
    downsample: 3,
    max_image_tokens: 1024,
    min_pixels: 544 * 544,
    max_wh_ratio: None,
};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Little-endian bytes of the matrix.
fn matrix_bytes(patches: &PatchMatrix) -> Vec<u8> {
    patches.values().iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Digests computed with Pillow 13.0.
#[test]
fn gradient_of_640_by_480() {
    let (width, height) = (640u32, 480u32);
    let rgb = (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .flat_map(|(x, y)| [255 * x / 639, 255 * y / 479, (x + y) % 256].map(|level| level as u8))
        .collect();
    let picture = Picture::new(width, height, rgb).unwrap();
    let target = TargetSize::of(width, height, &RELEASED).unwrap();
    let canvas = fit(&picture, &target).unwrap();
    assert_eq!(
        sha256(canvas.rgb()),
        "99e8ad4666765c5640b49b9576183f12c37d7d7aa5c1907cf3cca47a48045854"
    );
    let input = PictureInput::from_picture(&picture, &RELEASED).unwrap();
    let patches = &input.patches;
    assert_eq!((patches.patch_rows(), patches.patch_columns()), (35, 46));
    assert_eq!((patches.patches(), patches.patch_values()), (1610, 588));
    assert_eq!(
        sha256(&matrix_bytes(patches)),
        "93d055435a685bb777736a58891e0026f23723aa3c9b69aab56b69c483f2e544"
    );
    let first = patches.values()[..4].iter().map(|value| value.to_f32());
    assert!(first.eq([-0.003_936_767_6; 4]), "four rows of padding come first");
    assert_eq!((input.span.tokens(), input.span.cells()), (206, 192));
}

/// A golden file: header fields and the bytes they point into.
struct Golden {
    header: Value,
    file: Vec<u8>,
}

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens").join(name)
}

impl Golden {
    fn open(name: &str) -> Self {
        let file = std::fs::read(golden_path(name)).expect("golden file is in the repository");
        let header = serde_json::from_slice(&file[Self::header(&file)]).expect("golden header");
        Self { header, file }
    }

    fn header(file: &[u8]) -> Range<usize> {
        8..8 + u64::from_le_bytes(file[..8].try_into().expect("eight bytes")) as usize
    }

    fn bytes(&self, tensor: &str) -> &[u8] {
        let start = Self::header(&self.file).end;
        let offset = |i: usize| {
            start + self.header[tensor]["data_offsets"][i].as_u64().expect("an offset") as usize
        };
        &self.file[offset(0)..offset(1)]
    }

    fn integers(&self, tensor: &str) -> Vec<i32> {
        let (words, rest) = self.bytes(tensor).as_chunks::<4>();
        assert!(rest.is_empty() && self.header[tensor]["dtype"] == "I32", "{tensor}");
        words.iter().map(|word| i32::from_le_bytes(*word)).collect()
    }
}

/// The limits of the demo checkpoint, from its own configuration.
fn demo_limits() -> PictureLimits {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cli/demo/config.json");
    let config: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let number = |field: &str| config["vision_config"][field].as_u64().expect("a whole number");
    PictureLimits {
        patch: number("patch_size") as u32,
        downsample: number("downsample_ratio") as u32,
        max_image_tokens: number("max_image_tokens") as u32,
        min_pixels: number("min_pixels"),
        max_wh_ratio: config["vision_config"]["max_wh_ratio"].as_f64(),
    }
}

#[test]
fn demo_pictures() {
    let limits = demo_limits();
    for name in ["picture", "picture_odd", "picture_resized"] {
        let golden = Golden::open(&format!("{name}.safetensors"));
        let file = std::fs::read(golden_path(&format!("{name}.png"))).unwrap();
        let input = PictureInput::from_file(&file, &DecodeLimits::default(), &limits).unwrap();
        let grid = [input.patches.patch_rows() as i32, input.patches.patch_columns() as i32];
        assert_eq!(golden.integers("grid"), grid, "{name}");
        assert_eq!(golden.header["pixels"]["dtype"], "BF16", "{name}");
        assert!(golden.bytes("pixels") == matrix_bytes(&input.patches), "{name}: pixels differ");
        // Text positions are -1 and lie around the span.
        let types = golden.integers("types");
        let span: Vec<i32> = input.span.kinds().map(|kind| kind as i32).collect();
        let start = types.iter().position(|&kind| kind >= 0).expect("a picture in the prompt");
        let end = start + span.len();
        assert_eq!(types[start..end], span, "{name}");
        assert!(types[..start].iter().chain(&types[end..]).all(|&kind| kind == -1), "{name}");
        let aligned = golden.header["aligned"]["shape"][0].as_u64();
        assert_eq!(aligned, Some(input.span.cells()), "{name}");
    }
}
