//! Comparing a checkpoint with the catalogue.

use std::collections::HashSet;

use super::config::Config;
use super::names::{Expected, Format, catalogue};
use crate::error::{Error, Result, first_few, printable};
use crate::weights::{Checkpoint, Dtype, Tensor};

/// The findings, by kind: a missing tensor says more than a stray one, which is often the same
/// tensor under another name.
#[derive(Default)]
struct Findings {
    missing: Vec<String>,
    mistyped: Vec<String>,
    misshapen: Vec<String>,
    stray: Vec<String>,
}

pub(super) fn check(config: &Config, checkpoint: &Checkpoint) -> Result<()> {
    let mut findings = Findings::default();
    let mut names = HashSet::new();
    for expected in catalogue(config) {
        match checkpoint.tensor(&expected.name) {
            None => findings.missing.push(expected.name.clone()),
            Some(tensor) => findings.compare(&expected, tensor),
        }
        names.insert(expected.name);
    }
    if checkpoint.tensor_count() + findings.missing.len() > names.len() {
        let stray = checkpoint.tensors().filter(|tensor| !names.contains(tensor.name()));
        findings.stray.extend(stray.map(|tensor| printable(tensor.name())));
    }
    findings.verdict()
}

impl Findings {
    fn compare(&mut self, expected: &Expected, tensor: Tensor<'_>) {
        let (dtype, name) = (tensor.dtype(), &expected.name);
        let accepted = expected.format.accepted();
        if !accepted.contains(&dtype) {
            let list = accepted.iter().map(Dtype::to_string).collect::<Vec<_>>().join(" or ");
            let hint = match (expected.format, dtype) {
                (Format::Scale, Dtype::F32) => "; convert the scales to exponent bytes",
                _ => "",
            };
            self.mistyped.push(format!("{name} is {dtype}, must be {list}{hint}"));
        } else if tensor.shape() != expected.shape_as(dtype) {
            let (shape, must) = (tensor.shape(), expected.shape_as(dtype));
            let hint = match expected.format {
                Format::Scale => ", by weight_block_size [32, 32]",
                _ => "",
            };
            self.misshapen.push(format!("{name} is {shape:?}, must be {must:?}{hint}"));
        }
    }

    fn verdict(self) -> Result<()> {
        let problems: Vec<_> = [
            ("missing", self.missing),
            ("of the wrong type", self.mistyped),
            ("of the wrong shape", self.misshapen),
            ("not of this model", self.stray),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(what, list)| format!("{} {what}: {}", tensors(list.len()), first_few(&list)))
        .collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::checkpoint(problems.join("; ")))
    }
}

fn tensors(count: usize) -> String {
    format!("{count} tensor{}", if count == 1 { "" } else { "s" })
}
