//! A model whose logits are a table, on the reference device.

use super::geometry;
use std::sync::Arc;
use tandem_engine::Result;
use tandem_engine::exec::{Batch, DraftBatch, Engine, EngineOptions, Geometry, Network, Runner};
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
    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<View> {
        let positions = numbers(&batch.position, on).into_iter();
        self.write(positions.map(|at| (self.draft)(0, at as u64)), on)
    }
    fn bias(&self, _previous: &View, _logits: &View, _on: &dyn Stream) -> Result<()> {
        Ok(())
    }
}

/// An engine over it.
pub fn engine(
    (vocab, rule): (u64, Rule),
    (target, draft): (Law, Law),
    options: EngineOptions,
) -> Engine<Runner<Table>> {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let geometry = Geometry { vocab, upper: None, ..geometry() };
    let rows = options.outputs(&geometry);
    let shape = [rows, vocab];
    let bytes = View::reserved_bytes(Enc::F32, &shape);
    let alloc = device.allocate(bytes, Place::Device, "logits").unwrap();
    let logits = View::dense(&alloc, 0, Enc::F32, &shape).unwrap();
    let network = Table { geometry, target, draft, logits };
    let runner = Runner::new(&device, network, &options, rule).unwrap();
    Engine::new(runner, options).unwrap()
}
