//! Gate G1: each layer alone, from golden streams, mix, earlier caches and selections.

use crate::error::Result;
use crate::model::v41::layer::LayerScratch;
use crate::model::v41::topology::{Candidates, LayerTopology};

use super::subject::{Laid, Subject, bf16_bytes, f32_bytes, int_bytes};
use super::{
    Array, GoldenFile, Limit, Report, equal_share, median, percentile, relative_distance,
    unequal_share,
};

/// Share of cache values that may differ: what f64 sums make of the golden fp32 ones, with room.
pub const UNEQUAL_SHARE: f64 = 1e-3;
const ROWS_EQUAL: f64 = 0.995;
const STREAMS_MEDIAN: f64 = 1e-3;
const STREAMS_P99: f64 = 2.5e-2;
const PRE_WITHIN: f64 = 1e-2;
/// Two scores this close, in units of the larger, may change places.
const NEAR_TIE: f32 = 1e-3;

/// Golden inputs of every layer.
struct Inputs {
    ids: Vec<u32>,
    /// `[layers, tokens, streams, hidden]`.
    streams: Array<f32>,
    /// `[layers, tokens, streams]`.
    pre: Array<f32>,
}

impl Inputs {
    /// `None` when the file does not hold every position's.
    fn of(file: &GoldenFile) -> Result<Option<Inputs>> {
        let ids: Vec<u32> = file.ids()?.values.iter().map(|id| *id as u32).collect();
        let pick = |whole, tail| -> Result<Option<Array<f32>>> {
            let found = file.reals(whole)?;
            let found = if found.is_some() { found } else { file.reals(tail)? };
            Ok(found.filter(|t| t.shape.get(1) == Some(&ids.len())))
        };
        let (streams, pre) = (pick("streams", "streams_tail")?, pick("pre", "pre_tail")?);
        let (Some(streams), Some(pre)) = (streams, pre) else { return Ok(None) };
        Ok(Some(Inputs { ids, streams, pre }))
    }
}

/// Compare every layer that a golden file gives inputs for. Files without them are noted.
///
/// # Errors
/// When the file has tensors of another model, or the device fails.
pub fn compare(subject: &mut Subject, file: &GoldenFile, report: &mut Report) -> Result<()> {
    let Some(inputs) = Inputs::of(file)? else {
        report.skip(file.name(), None, "streams and pre of every position (no teacher forcing)");
        return Ok(());
    };
    let laid = subject.lay(&inputs.ids, &[])?;
    let t = subject.layers(&laid)?;
    let topology = subject.config().topology().layers;
    for (layer, place) in topology.iter().enumerate() {
        let run = LayerRun { subject, file, laid: &laid, t: &t, inputs: &inputs, layer, place };
        run.prepare()?;
        subject.model().layer(layer).forward(subject.lane(), &laid.batch, subject.caches(), &t)?;
        run.judge(report)?;
    }
    let Laid { mut pages, step, .. } = laid;
    pages.commit(step, 0);
    Ok(())
}

/// One layer of one file.
struct LayerRun<'a> {
    subject: &'a Subject,
    file: &'a GoldenFile,
    laid: &'a Laid,
    t: &'a LayerScratch,
    inputs: &'a Inputs,
    layer: usize,
    place: &'a LayerTopology,
}

impl LayerRun<'_> {
    fn tokens(&self) -> u64 {
        self.inputs.ids.len() as u64
    }

    /// Addresses of the first `count` entries of a source of this ratio.
    fn entries(&self, ratio: u64, count: usize) -> Vec<i32> {
        (0..count as u64).map(|entry| self.laid.pages.entry_address(ratio, entry)).collect()
    }

    /// Golden streams, mix, earlier caches and selection onto the device.
    fn prepare(&self) -> Result<()> {
        let (flow, on) = (&self.t.block.flow, self.subject.stream());
        on.write(&flow.streams, &bf16_bytes(self.inputs.streams.at(self.layer)))?;
        on.write(&flow.pre, &f32_bytes(self.inputs.pre.at(self.layer)))?;
        for source in self.subject.caches().sources.iter().filter(|s| s.layer < self.layer) {
            let formats = self.subject.formats();
            let pairs = [
                (
                    format!("compressed_kv.{}", source.layer),
                    formats.latent(source.ratio),
                    &source.latents,
                ),
                (format!("index_keys.{}", source.layer), formats.key(source.ratio), &source.keys),
            ];
            for (name, cache, view) in pairs {
                if let Some(golden) = self.file.reals(&name)? {
                    let at = self.entries(source.ratio, golden.len());
                    self.subject.store(&cache, view, &at, &golden.values)?;
                }
            }
        }
        self.prepare_selection()
    }

    fn prepare_selection(&self) -> Result<()> {
        let Some(compressed) = &self.t.block.compressed else { return Ok(()) };
        let (selection, on) = (&compressed.selection, self.subject.stream());
        if self.place.candidates == Candidates::Restricted
            && let Some(source) = self.subject.config().compression.candidate_source
            && let Some(mask) = self.file.integers(&format!("candidates.{source}"))?
        {
            let size = self.subject.config().compression.candidate_block_entries;
            let count = selection.blocks.shape()[1] as usize;
            let rows = (0..mask.len()).flat_map(|t| padded(&blocks_of(mask.at(t), size), count));
            on.write(&selection.blocks, &int_bytes(&rows.collect::<Vec<_>>()))?;
        }
        let Some(source) = self.place.index_source.filter(|s| *s != self.layer) else {
            return Ok(());
        };
        if let Some(golden) = self.file.integers(&format!("index_topk.{source}"))? {
            let k = selection.entries.shape()[1] as usize;
            let ratio = self.place.ratio as u64;
            let entries: Vec<i32> =
                (0..golden.len()).flat_map(|t| padded(golden.at(t), k)).collect();
            let address = |entry: &i32| match u64::try_from(*entry) {
                Ok(entry) => self.laid.pages.entry_address(ratio, entry),
                Err(_) => -1,
            };
            let at: Vec<i32> = entries.iter().map(address).collect();
            on.write(&selection.entries, &int_bytes(&entries))?;
            on.write(&selection.at, &int_bytes(&at))?;
        }
        Ok(())
    }

    fn judge(&self, report: &mut Report) -> Result<()> {
        self.judge_caches(report)?;
        self.judge_selection(report)?;
        self.judge_experts(report)?;
        self.judge_memory(report)?;
        self.judge_output(report)
    }

    fn judge_caches(&self, report: &mut Report) -> Result<()> {
        let (name, layer) = (self.file.name(), Some(self.layer));
        let formats = self.subject.formats();
        if let Some(golden) = self.file.reals("window_kv")? {
            let positions = 0..self.tokens();
            let at: Vec<i32> = positions.map(|p| self.laid.pages.window_address(p)).collect();
            let view = &self.subject.caches().windows[self.layer];
            let got = self.subject.fetch(&formats.window(), view, &at)?;
            let share = unequal_share(&got, golden.at(self.layer));
            report.add(name, layer, "window_kv unequal", share, Limit::AtMost(UNEQUAL_SHARE));
        } else {
            report.skip(name, layer, "window_kv");
        }
        if !self.place.owns_cache {
            return Ok(());
        }
        let source = self.subject.caches().source(self.layer);
        let pairs = [
            ("compressed_kv", formats.latent(source.ratio), &source.latents),
            ("index_keys", formats.key(source.ratio), &source.keys),
        ];
        for (what, cache, view) in pairs {
            let Some(golden) = self.file.reals(&format!("{what}.{}", self.layer))? else {
                report.skip(name, layer, what);
                continue;
            };
            let got =
                self.subject.fetch(&cache, view, &self.entries(source.ratio, golden.len()))?;
            let share = unequal_share(&got, &golden.values);
            let what = format!("{what} unequal");
            report.add(name, layer, what, share, Limit::AtMost(UNEQUAL_SHARE));
        }
        Ok(())
    }

    fn judge_selection(&self, report: &mut Report) -> Result<()> {
        let (name, layer) = (self.file.name(), Some(self.layer));
        let selects = self.place.index_source == Some(self.layer);
        let Some(compressed) = self.t.block.compressed.as_ref().filter(|_| selects) else {
            return Ok(());
        };
        if let Some(golden) = self.file.integers(&format!("index_topk.{}", self.layer))? {
            let k = compressed.selection.entries.shape()[1] as usize;
            let got = self.subject.integers(&compressed.selection.entries)?;
            let cut = self.file.reals(&format!("index_cut.{}", self.layer))?;
            let tie = |t: usize| cut.as_ref().is_some_and(|cut| is_near_tie(cut.at(t)));
            let row = |t: usize| (&got[t * k..(t + 1) * k], golden.at(t));
            let share = equal_share((0..golden.len()).map(row));
            report.add(name, layer, "index rows equal", share, Limit::AtLeast(ROWS_EQUAL));
            let clear = (0..golden.len()).filter(|t| !tie(*t)).map(row);
            let what = "index rows equal, near-ties apart";
            report.add(name, layer, what, equal_share(clear), Limit::AtLeast(1.0));
        }
        if let Some(mask) = self.file.integers(&format!("candidates.{}", self.layer))? {
            let size = self.subject.config().compression.candidate_block_entries;
            let count = compressed.selection.blocks.shape()[1] as usize;
            let got = self.subject.integers(&compressed.selection.blocks)?;
            let golden: Vec<Vec<i32>> =
                (0..mask.len()).map(|t| blocks_of(mask.at(t), size)).collect();
            let rows = golden.iter().enumerate();
            let rows = rows.map(|(t, golden)| (&got[t * count..(t + 1) * count], &golden[..]));
            let share = equal_share(rows);
            report.add(name, layer, "candidates equal", share, Limit::AtLeast(ROWS_EQUAL));
        }
        Ok(())
    }

    fn judge_experts(&self, report: &mut Report) -> Result<()> {
        let (name, layer) = (self.file.name(), Some(self.layer));
        let Some(golden) = self.file.integers("expert_ids")? else {
            report.skip(name, layer, "expert_ids");
            return Ok(());
        };
        let got = self.subject.integers(&self.t.block.moe.expert)?;
        let k = golden.shape[2];
        let rows = got.chunks(k).zip(golden.at(self.layer).chunks(k));
        let share = equal_share(rows);
        report.add(name, layer, "expert sets equal", share, Limit::AtLeast(ROWS_EQUAL));
        Ok(())
    }

    fn judge_memory(&self, report: &mut Report) -> Result<()> {
        let (Some(table), Some(scratch)) = (self.place.engram, &self.t.engram) else {
            return Ok(());
        };
        let Some(golden) = self.file.integers("engram_rows")? else {
            report.skip(self.file.name(), Some(self.layer), "engram_rows");
            return Ok(());
        };
        let got = self.subject.integers(&scratch.row)?;
        let columns = golden.shape[2];
        let unequal = (0..golden.len())
            .filter(|t| {
                got[t * columns..(t + 1) * columns] != golden.at(*t)[table * columns..][..columns]
            })
            .count();
        let share = unequal as f64 / golden.len().max(1) as f64;
        let what = "engram rows unequal";
        report.add(self.file.name(), Some(self.layer), what, share, Limit::AtMost(0.0));
        Ok(())
    }

    fn judge_output(&self, report: &mut Report) -> Result<()> {
        let (name, layer) = (self.file.name(), Some(self.layer));
        if self.layer + 1 >= self.inputs.streams.len() {
            return Ok(());
        }
        let got = self.subject.reals(&self.t.block.flow.streams)?;
        let golden = self.inputs.streams.at(self.layer + 1);
        let row = golden.len() / self.inputs.ids.len();
        let distances: Vec<f64> = got
            .chunks(row)
            .zip(golden.chunks(row))
            .map(|(got, golden)| relative_distance(got, golden))
            .collect();
        let (middle, tail) = (median(&distances), percentile(&distances, 0.99));
        report.add(
            name,
            layer,
            "next streams, median rel-L2",
            middle,
            Limit::AtMost(STREAMS_MEDIAN),
        );
        report.add(name, layer, "next streams, p99 rel-L2", tail, Limit::AtMost(STREAMS_P99));
        let got = self.subject.reals(&self.t.block.flow.pre)?;
        let golden = self.inputs.pre.at(self.layer + 1);
        let gap = |(a, b): (&f32, &f32)| f64::from((a - b).abs());
        let worst = got
            .iter()
            .zip(golden)
            .map(gap)
            .fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
        report.add(name, layer, "pre, largest gap", worst, Limit::AtMost(PRE_WITHIN));
        Ok(())
    }
}

/// Whether the last score taken and the best left out are so close that either order is right.
fn is_near_tie(cut: &[f32]) -> bool {
    let &[taken, left] = cut else { return false };
    taken.is_finite() && left.is_finite() && (taken - left).abs() <= NEAR_TIE * taken.abs()
}

/// A list padded with -1, or cut, to `count`.
fn padded(list: &[i32], count: usize) -> Vec<i32> {
    list.iter().copied().chain(std::iter::repeat(-1)).take(count).collect()
}

/// The blocks that hold a marked entry.
fn blocks_of(mask: &[i32], size: usize) -> Vec<i32> {
    let blocks = mask.chunks(size).enumerate();
    blocks.filter(|(_, block)| block.iter().any(|m| *m != 0)).map(|(b, _)| b as i32).collect()
}
