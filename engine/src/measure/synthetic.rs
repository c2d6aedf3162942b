//! A model of random weights whose steps are measured.

use std::sync::Arc;
use std::time::Duration;

use tandem_hal::{Device, Place, Stream, View};

use super::StepWork;
use crate::error::{Error, Result};
use crate::exec::{
    Captured, Chunk, EngineOptions, Geometry, Graphs, Network, StepBuffer, StepLists,
};
use crate::kv::{OutOfPages, PagePools, SequencePages};
use crate::model::v41::{Config, ModelWeights, Resident};
use crate::sample::read;
use crate::weights::{Content, Progress, Share, Source};

/// Replays that are timed when they are short.
const REPLAYS: u32 = 15;
/// Timed replays together take no longer, but for one.
const PATIENCE: Duration = Duration::from_secs(3);

/// A model whose weights hold what `content` says, ready for some steps.
pub struct Synthetic {
    resident: Resident,
    buffer: StepBuffer,
    stream: Box<dyn Stream>,
    options: EngineOptions,
    geometry: Geometry,
    vocab: u64,
}

/// What a step took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Device time from token ids to logits, the median of its replays.
    pub time: Duration,
    /// Replays that were timed.
    pub replays: u32,
}

impl Synthetic {
    /// On one device, for steps within `options`; tables of rows lie in `tables`, and no piece of
    /// the index scores takes more than `score_budget_bytes`.
    ///
    /// # Errors
    /// [`Error::Device`] when memory runs out or the device has no kernel for an operator.
    pub fn new(
        device: &Arc<dyn Device>,
        config: &Config,
        options: EngineOptions,
        (content, tables): (Content<'_>, Place),
        score_budget_bytes: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let source = Source { content, share: Share::WHOLE, tables };
        let classes = config.engram.as_ref().map(|engram| engram.compressed_vocab_size);
        let map: Vec<i32> = match classes {
            Some(classes) => {
                (0..config.vocab_size as u64).map(|id| (id % classes) as i32).collect()
            }
            None => vec![],
        };
        let on = device.as_ref();
        let weights = ModelWeights::load(on, config, (&map, false), &source, progress)?;
        let resident = Resident::new(on, config, weights, &options, score_budget_bytes)?;
        let geometry = resident.geometry().clone();
        let buffer = StepBuffer::new(on, &geometry, &options, resident.picture_rows())?;
        let (stream, vocab) = (device.stream()?, config.vocab_size as u64);
        if let Content::Random(seed) = content {
            resident.caches().randomise(stream.as_ref(), seed)?;
        }
        Ok(Self { resident, buffer, stream, options, geometry, vocab })
    }

    /// Runs a step once, launch by launch: `[outputs, vocab]` f32 logits.
    ///
    /// # Errors
    /// When the device fails or the step is not within the options.
    pub fn run(&mut self, work: &StepWork) -> Result<View> {
        let lists = self.lists(work)?;
        let batch = self.buffer.upload(&lists, self.stream.as_ref())?;
        let logits = self.resident.forward(&batch, self.stream.as_ref())?;
        self.stream.sync()?;
        Ok(logits)
    }

    /// Runs a step once, then times it as a captured graph.
    ///
    /// # Errors
    /// As [`Synthetic::run`], and [`Error::Internal`] when a logit is no finite number.
    pub fn time(&mut self, work: &StepWork) -> Result<Step> {
        let logits = self.run(work)?;
        let stream = self.stream.as_ref();
        if read::f32(&logits, stream)?.iter().any(|logit| !logit.is_finite()) {
            let invariant = "random weights keep every logit a finite number".to_owned();
            return Err(Error::Internal { invariant });
        }
        let lists = self.lists(work)?;
        let batch = self.buffer.upload(&lists, stream)?;
        let captured = Captured::new(stream, Graphs::Full, |on| self.resident.forward(&batch, on))?;
        let replay = || -> Result<Duration> {
            let start = stream.mark()?;
            captured.replay(stream)?;
            let end = stream.mark()?;
            stream.sync()?;
            Ok(end.since(start.as_ref())?)
        };
        let first = replay()?;
        let fit = PATIENCE.as_secs_f64() / first.as_secs_f64().max(1e-9);
        let replays = REPLAYS.min((fit as u32).max(1));
        let mut times = (0..replays).map(|_| replay()).collect::<Result<Vec<_>>>()?;
        times.sort_unstable();
        Ok(Step { time: times[times.len() / 2], replays })
    }

    /// Rows at the end of sequences of tokens that nobody computed.
    fn lists(&self, work: &StepWork) -> Result<StepLists> {
        let pools = PagePools::new(self.options.pool_pages(&self.geometry));
        let out = |error: OutOfPages| Error::argument("step", error.to_string());
        // A full-period walk over the ids, as far as the vocabulary has no factor of it.
        let id = |at: u64| (at * 7919 % self.vocab) as u32;
        let known: Vec<u32> = (0..work.context_tokens).map(id).collect();
        let before = work.context_tokens - work.rows;
        let mut sequences = Vec::with_capacity(work.sequences as usize);
        for _ in 0..work.sequences {
            let mut pages = SequencePages::new(&pools, self.geometry.window_tokens);
            while pages.tokens() < before {
                let rows = (before - pages.tokens()).min(self.options.step_tokens);
                let step = pages.begin(rows).map_err(out)?;
                pages.commit(step, rows);
            }
            let _open = pages.begin(work.rows).map_err(out)?;
            sequences.push(pages);
        }
        let chunk = |pages| Chunk {
            pages,
            known: &known,
            drafts: &[],
            start: before,
            end: work.context_tokens,
            upper_from: 0,
            pictures: &[],
            window_tokens: self.geometry.window_tokens,
            history_tokens: self.geometry.history_tokens,
        };
        let chunks: Vec<_> = sequences.iter().map(chunk).collect();
        let mut lists = StepLists::new(&chunks);
        let wanted = |row: &u64| work.every_row || (row + 1).is_multiple_of(work.rows);
        lists.want((0..work.tokens()).filter(wanted).map(|row| row as i32).collect());
        Ok(lists)
    }
}
