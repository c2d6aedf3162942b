//! A checkpoint: shards and the index that says which tensor lies in which shard.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::header::{self, Dtype, UniqueStrings};
use super::source::{Files, ReadAt, is_plain};
use crate::error::{Error, Result, first_few, printable};

/// An opened checkpoint. All headers have been read and agree with the index; no tensor has been
/// read and nothing in proportion to one has been allocated.
pub struct Checkpoint {
    shards: Vec<Shard>,
    tensors: HashMap<String, Place>,
    stray_files: Vec<String>,
}

struct Shard {
    file: String,
    source: Box<dyn ReadAt>,
}

struct Place {
    shard: usize,
    dtype: Dtype,
    shape: Vec<u64>,
    offset: u64,
    length_bytes: u64,
}

/// One tensor of a checkpoint: what it is, and where its bytes lie.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    name: &'a str,
    shard: &'a Shard,
    place: &'a Place,
}

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";
/// The release's index is under ten megabytes.
const INDEX_LIMIT_BYTES: u64 = 100_000_000;

/// Bytes of each tensor that [`Checkpoint::likeness`] reads.
pub const LIKENESS_BYTES: u64 = 64;

#[derive(Deserialize)]
struct Index {
    weight_map: UniqueStrings,
}

impl Checkpoint {
    /// Opens the checkpoint in `files`: `model.safetensors.index.json` with its shards, or a
    /// single `model.safetensors`.
    ///
    /// # Errors
    /// One line naming the first few of: shards that are missing, tensors the index names but its
    /// shard lacks, tensors a shard holds but the index does not place there (one in two shards is
    /// such a case), shard names that are paths; or whatever is wrong in a shard's header.
    pub fn open(files: &Files) -> Result<Self> {
        if !files.contains(INDEX) {
            if files.contains(SINGLE) {
                return Self::open_shards(files, vec![SINGLE.to_owned()], None);
            }
            return Err(Error::checkpoint(format!("neither {INDEX} nor {SINGLE} is there")));
        }
        let text = files.read(INDEX, INDEX_LIMIT_BYTES)?;
        let index: Index = serde_json::from_slice(&text).map_err(|error| {
            Error::file(INDEX, format!("bad index: {error}; fetch the file again"))
        })?;
        let mut by_shard: BTreeMap<String, usize> = BTreeMap::new();
        for (tensor, file) in &index.weight_map.0 {
            if !is_plain(file) {
                let problem = format!(
                    "places tensor {} in {}, which is no plain file name; shards lie beside the \
                     index",
                    printable(tensor),
                    printable(file)
                );
                return Err(Error::file(INDEX, problem));
            }
            *by_shard.entry(file.clone()).or_default() += 1;
        }
        let missing: Vec<_> = by_shard
            .iter()
            .filter(|(file, _)| !files.contains(file))
            .map(|(file, tensors)| format!("{} ({tensors} tensors)", printable(file)))
            .collect();
        if !missing.is_empty() {
            let problem = format!("shards missing: {}", first_few(&missing));
            return Err(Error::checkpoint(problem));
        }
        Self::open_shards(files, by_shard.into_keys().collect(), Some(index.weight_map.0))
    }

    fn open_shards(
        files: &Files,
        names: Vec<String>,
        weight_map: Option<Vec<(String, String)>>,
    ) -> Result<Self> {
        let mut stray_files = files.names()?;
        stray_files.retain(|name| name.ends_with(".safetensors") && !names.contains(name));
        let mut shards = Vec::with_capacity(names.len());
        let mut found = HashMap::new();
        let mut doubled = Vec::new();
        for file in names {
            let source = files.open(&file)?;
            let shard = shards.len();
            for entry in header::read(&file, source.as_ref())? {
                let header::Entry { name, dtype, shape, offset, length_bytes } = entry;
                let label = printable(&name);
                let place = Place { shard, dtype, shape, offset, length_bytes };
                if let Some(first) = found.insert(name, place) {
                    let first: &Shard = &shards[first.shard];
                    doubled.push(format!("{label} (in {} and {file})", first.file));
                }
            }
            shards.push(Shard { file, source });
        }
        if !doubled.is_empty() {
            return Err(Error::checkpoint(format!("tensors doubled: {}", first_few(&doubled))));
        }
        let checkpoint = Self { shards, tensors: found, stray_files };
        match weight_map {
            Some(map) => checkpoint.agree(&map).map(|()| checkpoint),
            None => Ok(checkpoint),
        }
    }

    /// Index and shards name the same tensors in the same places.
    fn agree(&self, weight_map: &[(String, String)]) -> Result<()> {
        let held = |name: &String| self.tensors.get(name).map(|place| &self.shards[place.shard]);
        let missing: Vec<_> = weight_map
            .iter()
            .filter(|(name, file)| held(name).is_none_or(|shard| shard.file != *file))
            .map(|(name, file)| format!("{} (due in {})", printable(name), printable(file)))
            .collect();
        if !missing.is_empty() {
            let problem = format!("tensors missing from their shard: {}", first_few(&missing));
            return Err(Error::checkpoint(problem));
        }
        if weight_map.len() == self.tensors.len() {
            return Ok(());
        }
        let indexed: std::collections::HashSet<_> =
            weight_map.iter().map(|(name, _)| name.as_str()).collect();
        let stray: Vec<_> = self
            .tensors()
            .filter(|tensor| !indexed.contains(tensor.name))
            .map(|tensor| format!("{} (in {})", printable(tensor.name), tensor.file()))
            .collect();
        Err(Error::checkpoint(format!("tensors not in the index: {}", first_few(&stray))))
    }

    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let (name, place) = self.tensors.get_key_value(name)?;
        Some(Tensor { name, shard: &self.shards[place.shard], place })
    }

    /// Every tensor, by shard and then by place in it: the order in which reading is sequential.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        let mut all: Vec<_> = self
            .tensors
            .iter()
            .map(|(name, place)| Tensor { name, shard: &self.shards[place.shard], place })
            .collect();
        all.sort_by_key(|tensor| (tensor.place.shard, tensor.place.offset, tensor.name));
        all.into_iter()
    }

    /// Digits that tell checkpoints apart without reading them: a digest over the name, type, shape and
    /// place of every tensor, over [`LIKENESS_BYTES`] out of the middle of each, and over `files`, the
    /// contents of others that decide what is computed. Two checkpoints that differ in other bytes alone
    /// are alike to it; training changes every tensor nearly everywhere.
    ///
    /// # Errors
    /// A read that the system fails.
    pub fn likeness(&self, files: &[Vec<u8>]) -> Result<String> {
        let mut hash = Sha256::new();
        for tensor in self.tensors() {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            let (file, offset) = (tensor.file(), tensor.offset());
            hash.update(format!("{} {dtype:?} {shape:?} {file} {offset}\n", tensor.name()));
            let length = tensor.length_bytes().min(LIKENESS_BYTES);
            let mut sample = vec![0; length as usize];
            tensor.read_at((tensor.length_bytes() - length) / 2, &mut sample)?;
            hash.update(&sample);
        }
        for bytes in files {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// How many tensors there are.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// The shards' file names.
    pub fn shards(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().map(|shard| shard.file.as_str())
    }

    /// Safetensors files beside the shards that the index does not name. They are left alone; a
    /// loader should report them.
    pub fn stray_files(&self) -> &[String] {
        &self.stray_files
    }
}

impl<'a> Tensor<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Its element type in the file.
    pub fn dtype(&self) -> Dtype {
        self.place.dtype
    }

    /// Its shape in the file, outermost first.
    pub fn shape(&self) -> &'a [u64] {
        &self.place.shape
    }

    /// The file that holds it.
    pub fn file(&self) -> &'a str {
        &self.shard.file
    }

    /// Its first byte, counted from the start of the file.
    pub fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Its bytes.
    pub fn length_bytes(&self) -> u64 {
        self.place.length_bytes
    }

    /// The bytes of row `row` (index along the first dimension), counted from the tensor's start.
    ///
    /// # Errors
    /// A row past the end, or rows that are not whole bytes.
    pub fn row_bytes(&self, row: u64) -> Result<Range<u64>> {
        let rows = self.shape().first().copied().unwrap_or(1);
        if row >= rows {
            return Err(self.refuse(format!("row {row} of {rows}")));
        }
        if !self.length_bytes().is_multiple_of(rows) {
            return Err(self.refuse("rows are not whole bytes".to_owned()));
        }
        let row_bytes = self.length_bytes() / rows;
        Ok(row * row_bytes..(row + 1) * row_bytes)
    }

    /// Fills `into` with the tensor's bytes from `offset` (counted from the tensor's start) on.
    ///
    /// # Errors
    /// A range that leaves the tensor, or a read the system fails.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(into.len() as u64);
        if end.is_none_or(|end| end > self.length_bytes()) {
            let problem =
                format!("{} bytes from {offset} leave its {}", into.len(), self.length_bytes());
            return Err(self.refuse(problem));
        }
        self.shard.source.read_at(self.place.offset + offset, into).map_err(|source| Error::Io {
            action: "read",
            path: self.shard.file.clone(),
            source,
        })
    }

    /// The whole tensor. For the small ones; a loader reads the large ones in pieces.
    ///
    /// # Errors
    /// As [`Tensor::read_at`].
    pub fn read(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.length_bytes())
            .map_err(|_| self.refuse("too long for this machine's memory".to_owned()))?;
        let mut bytes = vec![0; length];
        self.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn refuse(&self, problem: String) -> Error {
        Error::tensor(&self.shard.file, self.name, problem)
    }
}
