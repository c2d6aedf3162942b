//! The header of a safetensors file: an 8-byte little-endian length, a JSON object of that many
//! bytes, then the tensors' bytes without holes.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::source::ReadAt;
use crate::error::{Error, Result, printable};

/// Longest accepted header. The release's longest is under a megabyte.
pub const HEADER_LIMIT_BYTES: u64 = 100_000_000;

/// Element types of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Dtype {
    Bool,
    U8,
    I8,
    F8E5M2,
    F8E4M3,
    F8E8M0,
    I16,
    U16,
    F16,
    Bf16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
    /// Two FP4 codes per byte; the shape counts codes.
    F4,
    F6E2M3,
    F6E3M2,
}

/// Every type with its spelling in a header and its bits per element.
const DTYPES: [(Dtype, &str, u64); 19] = [
    (Dtype::Bool, "BOOL", 8),
    (Dtype::U8, "U8", 8),
    (Dtype::I8, "I8", 8),
    (Dtype::F8E5M2, "F8_E5M2", 8),
    (Dtype::F8E4M3, "F8_E4M3", 8),
    (Dtype::F8E8M0, "F8_E8M0", 8),
    (Dtype::I16, "I16", 16),
    (Dtype::U16, "U16", 16),
    (Dtype::F16, "F16", 16),
    (Dtype::Bf16, "BF16", 16),
    (Dtype::I32, "I32", 32),
    (Dtype::U32, "U32", 32),
    (Dtype::F32, "F32", 32),
    (Dtype::I64, "I64", 64),
    (Dtype::U64, "U64", 64),
    (Dtype::F64, "F64", 64),
    (Dtype::F4, "F4", 4),
    (Dtype::F6E2M3, "F6_E2M3", 6),
    (Dtype::F6E3M2, "F6_E3M2", 6),
];

impl Dtype {
    /// Bits of one element.
    pub fn bits(self) -> u64 {
        self.row().2
    }

    /// Bytes that elements of this shape take; `None` when they overflow or do not fill bytes.
    pub fn bytes(self, shape: &[u64]) -> Option<u64> {
        // An empty dimension makes the product zero whatever the others are.
        let elements = if shape.contains(&0) {
            0
        } else {
            shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?
        };
        let bits = elements.checked_mul(self.bits())?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }

    fn row(self) -> (Dtype, &'static str, u64) {
        *DTYPES.iter().find(|row| row.0 == self).expect("every type is in the table")
    }

    fn parse(name: &str) -> Option<Self> {
        DTYPES.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)
    }
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Element type.
    pub dtype: Dtype,
    /// Shape, outermost first.
    pub shape: Vec<u64>,
    /// First byte, counted from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub length_bytes: u64,
}

/// Reads and checks a file's header. The tensors come back in the order of their bytes.
///
/// Nothing is allocated by a length the file only claims to have: the length is checked against
/// the file and the limit first.
///
/// # Errors
/// One line naming the file, and the tensor where one is at fault: a length outside the file or
/// the limit, text that is not the expected JSON, a name given twice, an unknown dtype, offsets
/// that do not match the shape, overlaps, holes, and bytes after the last tensor.
pub fn read(file: &str, source: &dyn ReadAt) -> Result<Vec<Entry>> {
    checked(file, source).map_err(|mut error| {
        if let Error::File { problem, .. } | Error::Tensor { problem, .. } = &mut error {
            problem.push_str("; fetch the file again");
        }
        error
    })
}

fn checked(file: &str, source: &dyn ReadAt) -> Result<Vec<Entry>> {
    let total = source.length_bytes();
    let mut prefix = [0; PREFIX_BYTES as usize];
    if total < PREFIX_BYTES {
        return Err(Error::file(file, format!("{total} bytes are too few for a header")));
    }
    read_bytes(file, source, 0, &mut prefix)?;
    let length = u64::from_le_bytes(prefix);
    let rest = total - PREFIX_BYTES;
    if length > HEADER_LIMIT_BYTES {
        let problem = format!("header of {length} bytes exceeds the limit of {HEADER_LIMIT_BYTES}");
        return Err(Error::file(file, problem));
    }
    if length > rest {
        let problem = format!(
            "header of {length} bytes but only {rest} follow; the file is truncated or no \
             safetensors file"
        );
        return Err(Error::file(file, problem));
    }
    if length < 2 {
        return Err(Error::file(file, format!("header of {length} bytes cannot hold an object")));
    }
    let mut text = vec![0; length as usize];
    read_bytes(file, source, PREFIX_BYTES, &mut text)?;
    if text[0] != b'{' {
        return Err(Error::file(file, "the header does not start with {; no safetensors file"));
    }
    let raw: RawHeader = serde_json::from_slice(&text)
        .map_err(|error| Error::file(file, format!("bad header: {error}")))?;
    let mut entries =
        raw.0.into_iter().map(|(name, raw)| entry(file, name, &raw)).collect::<Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| (entry.offset, entry.length_bytes));
    without_holes(file, &entries, rest - length)?;
    for entry in &mut entries {
        entry.offset += PREFIX_BYTES + length;
    }
    Ok(entries)
}

const PREFIX_BYTES: u64 = 8;

fn read_bytes(file: &str, source: &dyn ReadAt, offset: u64, into: &mut [u8]) -> Result<()> {
    source.read_at(offset, into).map_err(|source| Error::Io {
        action: "read",
        path: printable(file),
        source,
    })
}

/// Checks one entry by itself; its offset still counts from the end of the header.
fn entry(file: &str, name: String, raw: &RawEntry) -> Result<Entry> {
    let refuse = |problem: String| Err(Error::tensor(file, &name, problem));
    let Some(dtype) = Dtype::parse(&raw.dtype) else {
        return refuse(format!("unknown dtype {}", printable(&raw.dtype)));
    };
    let [begin, end] = raw.data_offsets;
    let Some(length_bytes) = end.checked_sub(begin) else {
        return refuse(format!("offsets [{begin}, {end}] run backwards"));
    };
    let Some(expected) = dtype.bytes(&raw.shape) else {
        return refuse(format!("{dtype} {:?} overflows or does not fill whole bytes", raw.shape));
    };
    if expected != length_bytes {
        return refuse(format!(
            "{dtype} {:?} takes {expected} bytes, its offsets span {length_bytes}",
            raw.shape
        ));
    }
    Ok(Entry { name, dtype, shape: raw.shape.clone(), offset: begin, length_bytes })
}

/// Tensors follow each other from the first byte after the header to the last of the file.
fn without_holes(file: &str, entries: &[Entry], data_bytes: u64) -> Result<()> {
    let mut covered = 0;
    for entry in entries {
        let begin = entry.offset;
        if begin != covered {
            let what = if begin > covered { "leaves a hole" } else { "overlaps another tensor" };
            let problem = format!("begins at {begin} where {covered} is due and {what}");
            return Err(Error::tensor(file, &entry.name, problem));
        }
        covered = begin + entry.length_bytes;
        if covered > data_bytes {
            let problem = format!(
                "ends at {covered} but the file holds {data_bytes} bytes of tensors; it is truncated"
            );
            return Err(Error::tensor(file, &entry.name, problem));
        }
    }
    match data_bytes - covered {
        0 => Ok(()),
        extra => Err(Error::file(file, format!("{extra} bytes after the last tensor"))),
    }
}

/// A tensor as the header states it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The header's object, in order, each name once, `__metadata__` checked and dropped.
struct RawHeader(Vec<(String, RawEntry)>);

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = RawHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<RawHeader, A::Error> {
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let named = |error: A::Error| {
                de::Error::custom(format!("tensor {}: {error}", printable(&name)))
            };
            if !seen.insert(name.clone()) {
                return Err(named(de::Error::custom("named twice")));
            }
            if name == METADATA {
                map.next_value::<UniqueStrings>().map_err(named)?;
            } else {
                let entry = map.next_value::<RawEntry>().map_err(named)?;
                entries.push((name, entry));
            }
        }
        Ok(RawHeader(entries))
    }
}

const METADATA: &str = "__metadata__";

/// An object of strings in which no key stands twice, in file order.
pub(super) struct UniqueStrings(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for UniqueStrings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(StringsVisitor)
    }
}

struct StringsVisitor;

impl<'de> Visitor<'de> for StringsVisitor {
    type Value = UniqueStrings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut seen = HashSet::new();
        let mut strings = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            if !seen.insert(key.clone()) {
                return Err(de::Error::custom(format!("{} named twice", printable(&key))));
            }
            strings.push((key, value));
        }
        Ok(UniqueStrings(strings))
    }
}
