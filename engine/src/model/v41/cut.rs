//! A part of a model: its first layers, for measuring what does not fit as a whole.

use super::checks;
use super::config::Config;
use super::engram_hash::hashes;
use crate::error::{Error, Result};

impl Config {
    /// The first `layers` layers with everything of theirs, n-gram tables of a `divisor`-th of their
    /// rows, no draft stages and no vision tower.
    ///
    /// # Errors
    /// [`Error::Argument`] for layers there are none of, or as [`Config::from_json`] where the part
    /// is no model.
    pub fn cut(&self, layers: usize, divisor: u64) -> Result<Self> {
        if layers == 0 || layers > self.layers {
            let problem = format!("{layers} is outside 1 to {}, all there are", self.layers);
            return Err(Error::argument("layers", problem));
        }
        let mut cut = Self { layers, dspark: None, vision: None, ..self.clone() };
        let compression = &mut cut.compression;
        compression.ratios.truncate(layers);
        compression.kv_sources.retain(|layer| *layer < layers);
        compression.index_sources.retain(|layer| *layer < layers);
        compression.candidate_source = compression.candidate_source.filter(|l| *l < layers);
        if let Some(engram) = &mut cut.engram {
            engram.layers.retain(|layer| *layer < layers);
            engram.bucket_base = (engram.bucket_base / divisor.max(1)).max(2);
            engram.table_rows = hashes(engram).iter().map(|hash| hash.table_rows).collect();
        }
        cut.engram = cut.engram.filter(|engram| !engram.layers.is_empty());
        checks::check(&cut)?;
        Ok(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_what_its_layers_own() {
        let whole = Config::named("v4.1-flash").unwrap();
        let cut = whole.cut(16, 64).unwrap();
        assert_eq!((cut.layers, cut.compression.ratios.len()), (16, 16));
        assert_eq!(cut.compression.kv_sources, [2, 8, 14]);
        assert_eq!(cut.compression.candidate_source, None);
        let engram = cut.engram.unwrap();
        assert_eq!(engram.layers, [1, 14]);
        assert!(engram.table_rows[0] >= 24 * 250_000 && engram.table_rows[0] < 24 * 251_000);
        assert_eq!(whole.cut(1, 1).unwrap().engram, None);
        assert_eq!(whole.cut(40, 1).unwrap().engram, whole.engram);
        assert!(whole.cut(0, 1).is_err() && whole.cut(41, 1).is_err());
    }
}
