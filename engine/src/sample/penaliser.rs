//! Penalties and biases, for the requests that have any.

use crate::error::Result;
use crate::exec::{EngineOptions, Geometry, Sample, Staging};
use std::collections::BTreeSet;
use tandem_hal::{Device, Enc, Extents, Lane, Penalise, PenaliseIo, Plan, Sym, View, Want};

/// Runs over the rows of one request at a time: histories differ in length too much to share a
/// launch.
pub(crate) struct Penaliser {
    plan: Plan<Penalise>,
    biases: u64,
    staging: Staging,
}

impl Penaliser {
    pub(crate) fn new(
        device: &dyn Device,
        geometry: &Geometry,
        options: &EngineOptions,
    ) -> Result<Self> {
        let (rows, biases) = (1 + options.block(geometry), options.biases);
        let history = options.capacity_tokens(geometry) + rows;
        let extents = Extents::of(&[(Sym::Tokens, rows), (Sym::History, history)]);
        let descriptor = Penalise { vocab: geometry.vocab, biases };
        let lists =
            [rows * history, rows * history, rows, rows, rows, rows * biases, rows * biases];
        Ok(Self {
            plan: device.plan(descriptor, &Want::row_invariant(extents))?,
            biases,
            staging: Staging::new(device, "penalty lists", lists)?,
        })
    }

    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.plan.workspace_bytes()
    }

    /// Changes the rows of a sample from `first` on. Row `i` comes after `i` drafts, which count as
    /// generated there.
    pub(crate) fn run(
        &mut self,
        logits: &View,
        first: u64,
        sample: &Sample<'_>,
        lane: Lane<'_>,
    ) -> Result<()> {
        let rows = 1 + sample.drafts.len();
        // Of the prompt it only counts whether an id occurs.
        let prompt: BTreeSet<_> = sample.prompt.iter().map(|id| *id as i32).collect();
        let history = prompt.len().max(sample.generated.len() + sample.drafts.len()).max(1);
        let (mut prompts, mut outputs) = (Vec::new(), Vec::new());
        for row in 0..rows {
            prompts.extend(&prompt);
            let generated = sample.generated.iter().chain(&sample.drafts[..row]);
            outputs.extend(generated.map(|id| *id as i32));
            prompts.resize((row + 1) * history, -1);
            outputs.resize((row + 1) * history, -1);
        }
        let parameters = sample.parameters;
        let (rows, history) = (rows as u64, history as u64);
        let to = &mut self.staging;
        to.clear();
        let prompt = to.i32(&prompts, &[rows, history])?;
        let output = to.i32(&outputs, &[rows, history])?;
        let mut each = |value: f32| to.f32(&vec![value; rows as usize], &[rows]);
        let repetition = each(parameters.repetition_penalty)?;
        let presence = each(parameters.presence_penalty)?;
        let frequency = each(parameters.frequency_penalty)?;
        let (bias_id, bias) = self.biases(&parameters.logit_bias, rows)?;
        self.staging.flush(lane.stream)?;
        let logits = logits.rows(first..first + rows)?;
        let io = PenaliseIo {
            prompt: &prompt,
            output: &output,
            repetition: &repetition,
            presence: &presence,
            frequency: &frequency,
            bias_id: &bias_id,
            bias: &bias,
            logits: &logits,
        };
        Ok(lane.run(&self.plan, io)?)
    }

    fn biases(&mut self, biases: &[(u32, f32)], rows: u64) -> Result<(View, View)> {
        if self.biases == 0 {
            return Ok((View::absent(Enc::I32), View::absent(Enc::F32)));
        }
        let columns = self.biases as usize;
        let mut ids: Vec<_> = biases.iter().map(|(id, _)| *id as i32).collect();
        let mut values: Vec<_> = biases.iter().map(|(_, bias)| *bias).collect();
        ids.resize(columns, -1);
        values.resize(columns, 0.0);
        let shape = [rows, self.biases];
        let ids = self.staging.i32(&ids.repeat(rows as usize), &shape)?;
        Ok((ids, self.staging.f32(&values.repeat(rows as usize), &shape)?))
    }
}
