//! One sequence on one device: pages in order, so an address is a position.
#![allow(dead_code)]

pub mod demo;
pub mod guarded;
pub mod live;
pub mod watched;
pub mod witness;

use std::fs;

use tandem_engine::exec::{Batch, DraftBatch, RatioLists, UpperRows};
use tandem_engine::model::v41::lanes::Lanes;
use tandem_engine::model::v41::{Caches, Config, Limits, Model, Pools, Recipe, Scratch};
use tandem_engine::text::{Tokenizer, VocabularyMap};
use tandem_hal::null::Null;
use tandem_hal::{
    Capabilities, Device, DeviceId, DeviceInfo, Dialect, Elem, Enc, Lane, Place, Stream, View,
};
use tandem_reference::{RefDevice, Setup};

pub const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo");

/// The accounting device, with room for everything.
pub fn null() -> Null {
    let capabilities =
        Capabilities { dialect: Dialect::Fn, fp4_units: false, shared_memory_bytes: 0, lanes: 1 };
    let info = DeviceInfo {
        id: DeviceId(1),
        name: "null".into(),
        board: "null".into(),
        arch: "null".into(),
        memory_bytes: 1 << 40,
        capabilities,
        rank: 0,
        ranks: 1,
    };
    Null::new(info, None)
}

/// A reference device that runs fused operators step by step.
pub fn primitives() -> RefDevice {
    RefDevice::with(&Setup { primitives_only: true, ..Setup::default() })
}

pub fn demo_config() -> Config {
    Config::from_json(&fs::read(format!("{DEMO}/config.json")).unwrap()).unwrap()
}

pub fn demo_map(config: &Config) -> VocabularyMap {
    let tokenizer = Tokenizer::from_file(format!("{DEMO}/tokenizer.json")).unwrap();
    let classes = config.engram.as_ref().unwrap().compressed_vocab_size as usize;
    VocabularyMap::new(&tokenizer, classes).unwrap()
}

/// Limits for one sequence of up to `tokens`.
pub fn limits(tokens: u64) -> Limits {
    let pages = tokens.div_ceil(64);
    Limits {
        tokens,
        outputs: tokens,
        sequences: 1,
        table_pages: pages,
        // A draft's own entries come after those of the sequence.
        pools: Pools { pages, window_pages: 2 * pages + 1, open_pages: 8 * pages },
        cells: 1,
        score_budget_bytes: 64 << 20,
    }
}

/// A demo model with its caches.
pub struct Bench {
    pub model: Model,
    pub caches: Caches,
    pub scratch: Scratch,
    pub lanes: Lanes,
    pub stream: Box<dyn Stream>,
    limits: Limits,
    inputs: Inputs,
}

impl Bench {
    pub fn new(device: &dyn Device, limits: Limits) -> Bench {
        let config = demo_config();
        let recipe = Recipe::of(&config);
        Bench::with(device, (&config, &recipe), limits)
    }

    pub fn with(
        device: &dyn Device,
        (config, recipe): (&Config, &Recipe),
        limits: Limits,
    ) -> Bench {
        let weights = demo::weights(device, config, true);
        let model = Model::plan(device, config, recipe, limits, weights).unwrap();
        let caches = Caches::with_formats(device, config, &recipe.formats, &limits.pools).unwrap();
        let scratch = model.scratch(device).unwrap();
        let lanes = model.lanes(device).unwrap();
        let stream = device.stream().unwrap();
        let inputs = Inputs::new(device, &limits, config);
        Bench { model, caches, scratch, lanes, stream, limits, inputs }
    }

    pub fn lane(&self) -> Lane<'_> {
        self.lanes.lane(self.stream.as_ref())
    }

    /// Positions `rows` of the sequence `ids`, logits wanted of the step's rows `outputs`.
    pub fn batch(&self, ids: &[i32], rows: &[usize], outputs: &[i32]) -> Batch {
        let on = self.stream.as_ref();
        let window = self.model.config().attention.window_tokens;
        let history = self.model.config().engram.as_ref().unwrap().max_ngram;
        self.inputs.batch(on, ids, rows, outputs, (window, history, self.limits.table_pages))
    }

    /// The same, with layers above the split on the rows `upper` of the step; outputs count those.
    pub fn split_batch(
        &self,
        second: &Inputs,
        (ids, rows): (&[i32], &[usize]),
        upper: &[i32],
        outputs: &[i32],
    ) -> Batch {
        let on = self.stream.as_ref();
        let window = self.model.config().attention.window_tokens;
        let history = self.model.config().engram.as_ref().unwrap().max_ngram;
        let sizes = (window, history, self.limits.table_pages);
        let trailing: Vec<usize> = upper.iter().map(|row| rows[*row as usize]).collect();
        let mut batch = self.batch(ids, rows, &[]);
        let rows = second.batch(on, ids, &trailing, outputs, sizes);
        let at = second.list(on, &second.at, upper, 1);
        batch.upper = Some(Box::new(UpperRows { at, rows }));
        batch
    }

    /// The draft after `anchor` at position `at`.
    pub fn draft_batch(&self, anchor: i32, at: usize) -> DraftBatch {
        let config = self.model.config();
        let dspark = config.dspark.as_ref().unwrap();
        let (block, window) = (dspark.block_size, config.attention.window_tokens);
        let mut id = vec![dspark.noise_token_id as i32; block];
        id[0] = anchor;
        let position: Vec<i32> = (0..block).map(|i| (at + i) as i32).collect();
        // Past every position that a step may write.
        let scratch = self.limits.pools.window_pages as i32 * 32 - block as i32;
        let own: Vec<i32> = (0..block as i32).map(|i| scratch + i).collect();
        let first = at.saturating_sub(window);
        let mut list = vec![-1; window - (at - first)];
        list.extend((first..at).map(|p| p as i32));
        list.extend(&own);
        let lists: Vec<i32> = (0..block).flat_map(|_| list.clone()).collect();
        let (on, inputs) = (self.stream.as_ref(), &self.inputs);
        DraftBatch {
            tokens: block as u64,
            sequences: 1,
            id: inputs.list(on, &inputs.id, &id, 1),
            position: inputs.list(on, &inputs.position, &position, 1),
            window_at: inputs.list(on, &inputs.draft_at, &lists, window + block),
            window_store: inputs.list(on, &inputs.window_store, &own, 1),
        }
    }

    pub fn i32s(&self, view: &View) -> Vec<i32> {
        let bytes = self.stream.read(view).unwrap();
        bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    pub fn f32s(&self, view: &View) -> Vec<f32> {
        let bytes = self.stream.read(view).unwrap();
        if view.enc() == Enc::BF16 {
            return bf16s(&bytes);
        }
        assert_eq!(view.enc(), Enc::F32);
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    pub fn write_bf16s(&self, view: &View, values: &[f32]) {
        let bytes: Vec<u8> =
            values.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect();
        self.stream.write(view, &bytes).unwrap();
    }

    pub fn write_i32s(&self, view: &View, values: &[i32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.stream.write(view, &bytes).unwrap();
    }
}

pub fn bf16s(bytes: &[u8]) -> Vec<f32> {
    let value = |b: &[u8]| half::bf16::from_le_bytes([b[0], b[1]]).to_f32();
    bytes.chunks_exact(2).map(value).collect()
}

/// Buffers of a step's device data.
pub struct Inputs {
    id: View,
    position: View,
    sequence: View,
    picture: View,
    window_at: View,
    draft_at: View,
    window_store: View,
    open_store: View,
    open_members: View,
    table: View,
    lists: [(View, View, View); 2],
    history: View,
    output_at: View,
    at: View,
}

impl Inputs {
    pub fn new(device: &dyn Device, limits: &Limits, config: &Config) -> Inputs {
        let view = |enc, shape: &[u64]| {
            let bytes = View::reserved_bytes(enc, shape);
            let reserved = device.allocate(bytes, Place::Device, "test.inputs").unwrap();
            View::dense(&reserved, 0, enc, shape).unwrap()
        };
        let n = limits.tokens.max(8);
        let list = |width: u64| view(Enc::I32, &[n, width]);
        let row = || view(Enc::I32, &[n]);
        let window = config.attention.window_tokens as u64;
        let block = config.dspark.as_ref().map_or(0, |dspark| dspark.block_size as u64);
        let entries = limits.table_pages * 64;
        let marker = |ratio: u64| view(Enc::Plain(Elem::U8), &[1, entries / ratio]);
        Inputs {
            id: row(),
            position: row(),
            sequence: row(),
            picture: row(),
            window_at: list(window),
            draft_at: view(Enc::I32, &[8, window + block]),
            window_store: row(),
            open_store: row(),
            open_members: list(2),
            table: view(Enc::I32, &[1, limits.table_pages]),
            lists: [(row(), row(), marker(1)), (row(), row(), marker(2))],
            history: list(config.engram.as_ref().map_or(1, |engram| engram.max_ngram as u64)),
            output_at: row(),
            at: row(),
        }
    }

    fn list(&self, on: &dyn Stream, view: &View, values: &[i32], width: usize) -> View {
        let view = view.rows(0..(values.len() / width) as u64).unwrap();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        on.write(&view, &bytes).unwrap();
        view
    }

    fn batch(
        &self,
        on: &dyn Stream,
        ids: &[i32],
        rows: &[usize],
        outputs: &[i32],
        (window, history, table_pages): (usize, usize, u64),
    ) -> Batch {
        let list = |view: &View, width: usize, values: &dyn Fn(usize) -> Vec<i32>| {
            let all: Vec<i32> = rows.iter().flat_map(|p| values(*p)).collect();
            self.list(on, view, &all, width)
        };
        let back = |p: usize, i: usize| p.checked_sub(i);
        let ratio = |r: usize| {
            let (visible, store, entries) = &self.lists[r - 1];
            RatioLists {
                visible: list(visible, 1, &|p| vec![((p + 1) / r) as i32]),
                store: list(store, 1, &|p| {
                    vec![if (p + 1) % r == 0 { (p / r) as i32 } else { -1 }]
                }),
                entries: entries.clone(),
            }
        };
        let pages: Vec<i32> = (0..table_pages as i32).collect();
        Batch {
            tokens: rows.len() as u64,
            sequences: 1,
            outputs: outputs.len() as u64,
            id: list(&self.id, 1, &|p| vec![ids[p]]),
            position: list(&self.position, 1, &|p| vec![p as i32]),
            sequence: list(&self.sequence, 1, &|_| vec![0]),
            picture: list(&self.picture, 1, &|_| vec![0]),
            window_at: list(&self.window_at, window, &|p| {
                (0..window).rev().map(|i| back(p, i).map_or(-1, |p| p as i32)).collect()
            }),
            window_store: list(&self.window_store, 1, &|p| vec![p as i32]),
            open_store: list(&self.open_store, 1, &|p| vec![p as i32]),
            open_members: list(&self.open_members, 2, &|p| match p % 2 {
                0 => vec![-1, -1],
                _ => vec![p as i32 - 1, p as i32],
            }),
            table: self.list(on, &self.table, &pages, pages.len()),
            ratio1: ratio(1),
            ratio2: ratio(2),
            history: list(&self.history, history, &|p| {
                (0..history).map(|i| back(p, i).map_or(-1, |p| ids[p])).collect()
            }),
            output_at: self.list(on, &self.output_at, outputs, 1),
            pictures: None,
            upper: None,
        }
    }
}
