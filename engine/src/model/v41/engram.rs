//! n-gram memory: rows looked up by the last few token ids, added to every stream through a gate
//! before the block. Ranks hold it whole.

use tandem_hal::{
    Cast, CastIo, Elem, Enc, EngramGate, EngramGateIo, EngramHash, EngramHashIo, EngramLookup,
    EngramLookupIo, Lane, Mxfp8Linear, Mxfp8LinearIo, Plan, Real, View,
};

use super::config::{Config, Engram as EngramConfig};
use super::engram_hash::hashes;
use super::plans::Plans;
use crate::error::Result;
use crate::weights::{Loader, Room};

/// Weights of one layer's n-gram memory.
pub struct EngramWeights {
    table: View,
    wkv: View,
    q_weight: View,
    k_weight: View,
}

impl EngramWeights {
    /// Those of the layer at `prefix`, the `index`-th that has a table.
    pub fn load(
        loader: &mut Loader<'_>,
        config: &Config,
        prefix: &str,
        (engram, index): (&EngramConfig, usize),
    ) -> Result<Self> {
        let (hidden, streams) = (config.hidden_size as u64, config.hyper.streams as u64);
        let name = |what| format!("{prefix}engram.{what}");
        let (rows, width) = (engram.table_rows[index], engram.head_dim as u64);
        let table = loader.table(&name("table"), &name("embed"), rows, width)?;
        let (wkv, q_weight, k_weight) = loader.module(&format!("{prefix}engram"), |module| {
            let gate = [streams, hidden];
            let width = engram.width() as u64;
            Ok((
                module.mxfp8(&name("wkv"), (streams + 1) * hidden, width)?,
                module.plain(&name("q_weight"), Elem::Bf16, &gate)?,
                module.plain(&name("k_weight"), Elem::Bf16, &gate)?,
            ))
        })?;
        Ok(Self { table, wkv, q_weight, k_weight })
    }
}

buffers! {
    /// Scratch of the n-gram memory.
    pub struct EngramScratch {
        /// `[tokens, columns]` i32 table rows.
        row,
        /// `[tokens, columns * head_dim]` bf16.
        embedding,
        /// The same in FP8.
        embedding8,
        /// `[tokens, (streams + 1) * hidden]` bf16, a key per stream, then the value.
        kv,
    }
}

impl EngramScratch {
    /// Buffers for up to `tokens` rows.
    pub fn reserve(
        room: &mut Room<'_>,
        config: &Config,
        engram: &EngramConfig,
        tokens: u64,
    ) -> Result<Self> {
        let (columns, width) = (engram.columns() as u64, engram.width() as u64);
        let kv = (config.hyper.streams as u64 + 1) * config.hidden_size as u64;
        Ok(Self {
            row: room.view(Enc::I32, &[tokens, columns])?,
            embedding: room.view(Enc::BF16, &[tokens, width])?,
            embedding8: room.view(Enc::Q8, &[tokens, width])?,
            kv: room.view(Enc::BF16, &[tokens, kv])?,
        })
    }
}

/// What the memory needs to know of each row.
#[derive(Clone, Copy)]
pub struct EngramRows<'a> {
    /// `[tokens, longest n-gram]` i32 token ids, newest first.
    pub history: &'a View,
    /// `[tokens]` i32, 1 for rows that pass untouched.
    pub masked: &'a View,
}

/// The n-gram memory of one layer.
pub struct Engram {
    hash: Plan<EngramHash>,
    lookup: Plan<EngramLookup>,
    cast: Plan<Cast>,
    project: Plan<Mxfp8Linear>,
    gate: Plan<EngramGate>,
    /// `[vocab]` i32, compressed id of each token id.
    map: View,
    w: EngramWeights,
}

impl Engram {
    /// Plans for the `index`-th layer that has a table.
    pub fn plan(
        plans: &mut Plans<'_>,
        config: &Config,
        (engram, index): (&EngramConfig, usize),
        map: View,
        w: EngramWeights,
    ) -> Result<Self> {
        let (width, streams) = (config.hidden_size as u64, config.hyper.streams as u64);
        let numbers = hashes(engram).swap_remove(index);
        let (columns, head_dim) = (engram.columns() as u64, engram.head_dim as u64);
        let vocab = config.vocab_size as u64;
        Ok(Self {
            hash: plans.plan(EngramHash {
                vocab,
                multipliers: numbers.multipliers,
                primes: numbers.primes,
                pad: u64::from(engram.pad_token_id),
                // A model without pictures has no such id: one outside the vocabulary is as good.
                picture: config.image_token_id.map_or(vocab, u64::from),
                classes: engram.compressed_vocab_size,
            })?,
            lookup: plans.plan(EngramLookup { rows: numbers.table_rows, columns, head_dim })?,
            cast: plans.plan(Cast { to: Enc::Q8, width: columns * head_dim })?,
            project: plans.plan(Mxfp8Linear { n: (streams + 1) * width, k: columns * head_dim })?,
            gate: plans.plan(EngramGate { streams, width, eps: Real::new(config.norm_eps) })?,
            map,
            w,
        })
    }

    /// Adds to `streams` in place.
    pub fn forward(
        &self,
        on: Lane<'_>,
        rows: &EngramRows<'_>,
        streams: &View,
        t: &EngramScratch,
    ) -> Result<()> {
        let (w, history) = (&self.w, rows.history);
        on.run(&self.hash, EngramHashIo { history, map: &self.map, y: &t.row })?;
        let (row, table) = (&t.row, &w.table);
        on.run(&self.lookup, EngramLookupIo { row, table, y: &t.embedding })?;
        on.run(&self.cast, CastIo { x: &t.embedding, y: &t.embedding8 })?;
        on.run(&self.project, Mxfp8LinearIo { x: &t.embedding8, weight: &w.wkv, y: &t.kv })?;
        let (q_weight, k_weight) = (&w.q_weight, &w.k_weight);
        let io = EngramGateIo { kv: &t.kv, q_weight, k_weight, masked: rows.masked, streams };
        Ok(on.run(&self.gate, io)?)
    }
}
