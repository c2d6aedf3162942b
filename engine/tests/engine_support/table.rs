//! A model whose logits are a table, on the reference device.

use super::geometry;
use std::ops::Range;
use std::sync::Arc;
use tandem_engine::Result;
use tandem_engine::exec::{
    Batch, DraftBatch, Drafted, Engine, EngineOptions, Geometry, Network, Runner,
};
use tandem_hal::{Device, Enc, Place, Rule, Stream, View};
use tandem_reference::RefDevice;

/// Logits after an id at a position.
pub type Law = fn(u32, u64) -> Vec<f32>;

/// A model that looks its logits up.
pub struct Table {
    geometry: Geometry,
    target: Law,
    /// What the draft stages believe.
    draft: Law,
    /// How sure they are of a token, by the one before.
    confidence: fn(u32) -> f32,
    logits: View,
}

impl Table {
    fn write(&self, rows: impl Iterator<Item = Vec<f32>>, on: &dyn Stream) -> Result<View> {
        let rows: Vec<_> = rows.collect();
        let view = self.logits.rows(0..rows.len() as u64)?;
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|logit| logit.to_le_bytes()).collect();
        on.write(&view, &bytes)?;
        Ok(view)
    }
}

fn numbers(view: &View, on: &dyn Stream) -> Vec<i32> {
    let bytes = on.read(view).unwrap();
    bytes.as_chunks().0.iter().map(|word| i32::from_le_bytes(*word)).collect()
}

impl Network for Table {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    fn forward(&self, batch: &Batch, on: &dyn Stream) -> Result<View> {
        let (ids, positions) = (numbers(&batch.id, on), numbers(&batch.position, on));
        let row = |row: i32| match usize::try_from(row) {
            Ok(row) => (self.target)(ids[row] as u32, positions[row] as u64),
            Err(_) => vec![0.0; self.geometry.vocab as usize],
        };
        self.write(numbers(&batch.output_at, on).into_iter().map(row), on)
    }
    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<Drafted> {
        let positions = numbers(&batch.position, on).into_iter();
        let logits = self.write(positions.map(|at| (self.draft)(0, at as u64)), on)?;
        Ok(Drafted { hidden: View::absent(Enc::BF16), logits })
    }
    fn bias(&self, _previous: &View, _logits: &View, _on: &dyn Stream) -> Result<()> {
        Ok(())
    }
    fn confidence(
        &self,
        _drafted: &Drafted,
        _rows: Range<u64>,
        (previous, y): (&View, &View),
        on: &dyn Stream,
    ) -> Result<()> {
        let chance = |id: i32| (self.confidence)(u32::try_from(id).unwrap_or(0));
        let logit = |id| (chance(id) / (1.0 - chance(id))).ln();
        let logits = numbers(previous, on).into_iter().map(logit);
        Ok(on.write(y, &logits.flat_map(f32::to_le_bytes).collect::<Vec<_>>())?)
    }
}

/// An engine over it.
pub fn engine(
    setup: (u64, Rule),
    laws: (Law, Law),
    options: EngineOptions,
) -> Engine<Runner<Table>> {
    confident_engine(setup, laws, |_| 0.9, options)
}

/// An engine over a table whose stages say how sure they are.
pub fn confident_engine(
    (vocab, rule): (u64, Rule),
    (target, draft): (Law, Law),
    confidence: fn(u32) -> f32,
    options: EngineOptions,
) -> Engine<Runner<Table>> {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let geometry = Geometry { vocab, upper: None, ..geometry() };
    let rows = options.outputs(&geometry);
    let shape = [rows, vocab];
    let bytes = View::reserved_bytes(Enc::F32, &shape);
    let alloc = device.allocate(bytes, Place::Device, "logits").unwrap();
    let logits = View::dense(&alloc, 0, Enc::F32, &shape).unwrap();
    let network = Table { geometry, target, draft, confidence, logits };
    let runner = Runner::new(&device, network, &options, rule).unwrap();
    Engine::new(runner, options).unwrap()
}
