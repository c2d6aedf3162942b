//! A file of golden tensors.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::weights::{Dtype, Files, header};

/// A tensor on the host, as f32 or i32 values of its own dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// Extents.
    pub shape: Vec<usize>,
    /// Elements, row-major.
    pub values: Vec<T>,
}

impl<T: Copy> Array<T> {
    /// Elements of index `i` of the first axis.
    pub fn at(&self, i: usize) -> &[T] {
        let step: usize = self.shape[1..].iter().product();
        &self.values[i * step..(i + 1) * step]
    }
    /// Extent of the first axis.
    pub fn len(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// One prompt's golden tensors, read whole.
pub struct GoldenFile {
    name: String,
    tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
}

impl GoldenFile {
    /// Reads every tensor of file `name`.
    ///
    /// # Errors
    /// When the file is missing or is no sound safetensors file.
    pub fn read(files: &Files, name: &str) -> Result<GoldenFile> {
        let source = files.open(name)?;
        let mut tensors = BTreeMap::new();
        for entry in header::read(name, &*source)? {
            let mut bytes = vec![0; entry.length_bytes as usize];
            source.read_at(entry.offset, &mut bytes).map_err(|source| Error::Io {
                action: "read",
                path: name.into(),
                source,
            })?;
            let shape = entry.shape.iter().map(|n| *n as usize).collect();
            tensors.insert(entry.name, (entry.dtype, shape, bytes));
        }
        Ok(GoldenFile { name: name.into(), tensors })
    }

    /// The file's name without its ending.
    pub fn name(&self) -> &str {
        self.name.strip_suffix(".safetensors").unwrap_or(&self.name)
    }

    /// Names of the tensors there are.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor of real numbers (F32 or BF16); `None` when the file lacks it.
    ///
    /// # Errors
    /// When it is there with another dtype.
    pub fn reals(&self, name: &str) -> Result<Option<Array<f32>>> {
        self.decode(name, |dtype, bytes| match dtype {
            Dtype::F32 => Some(words(bytes).map(f32::from_le_bytes).collect()),
            Dtype::Bf16 => Some(
                bytes
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|b| tandem_hal::num::bf16::to_f32(u16::from_le_bytes(*b)))
                    .collect(),
            ),
            _ => None,
        })
    }

    /// A tensor of integers (I32 or U8); `None` when the file lacks it.
    ///
    /// # Errors
    /// When it is there with another dtype.
    pub fn integers(&self, name: &str) -> Result<Option<Array<i32>>> {
        self.decode(name, |dtype, bytes| match dtype {
            Dtype::I32 => Some(words(bytes).map(i32::from_le_bytes).collect()),
            Dtype::U8 => Some(bytes.iter().map(|b| i32::from(*b)).collect()),
            _ => None,
        })
    }

    /// As [`GoldenFile::integers`], for a tensor that every golden file has.
    ///
    /// # Errors
    /// When it is missing or has another dtype.
    pub fn ids(&self) -> Result<Array<i32>> {
        self.integers("ids")?
            .ok_or_else(|| self.bad("ids", "is missing; golden files name their prompt"))
    }

    fn decode<T>(
        &self,
        name: &str,
        values: impl FnOnce(Dtype, &[u8]) -> Option<Vec<T>>,
    ) -> Result<Option<Array<T>>> {
        let Some((dtype, shape, bytes)) = self.tensors.get(name) else { return Ok(None) };
        let wrong = || self.bad(name, &format!("{dtype:?} is not a dtype expected of it"));
        let values = values(*dtype, bytes).ok_or_else(wrong)?;
        Ok(Some(Array { shape: shape.clone(), values }))
    }

    fn bad(&self, tensor: &str, problem: &str) -> Error {
        Error::Tensor { file: self.name.clone(), tensor: tensor.into(), problem: problem.into() }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    bytes.as_chunks::<4>().0.iter().copied()
}
