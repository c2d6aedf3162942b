//! What the layers keep between steps: the records of every cache, and where each layer finds its
//! own.

use tandem_hal::{Arena, Cache, Device, Enc, Form, Record, Result, Sym, View};

use super::config::Config;
use crate::kv::{OPEN_PAGE_TOKENS, PAGE_TOKENS, PageKind, WINDOW_PAGE_TOKENS};

/// Pages of each pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pools {
    /// Of the compressed caches, [`PAGE_TOKENS`] each.
    pub pages: u64,
    /// Of the windows, [`WINDOW_PAGE_TOKENS`] each.
    pub window_pages: u64,
    /// Of the open groups, [`OPEN_PAGE_TOKENS`] each.
    pub open_pages: u64,
}

/// The record and page size of every kind of cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheFormats {
    /// Of a window entry.
    pub window: Record,
    /// Of a compressed entry.
    pub latent: Record,
    /// Of an index key.
    pub key: Record,
    /// Of a token of an open group, `[value | gate]`.
    pub open: Record,
}

impl CacheFormats {
    /// The model's own: the records that hold its rounded values without loss.
    pub fn of(config: &Config) -> Self {
        let (head_dim, index_dim) =
            (config.attention.head_dim as u32, config.indexer.head_dim as u32);
        Self {
            window: Record::new(Form::Mxfp8, head_dim),
            latent: Record::new(Form::Nvfp4, head_dim),
            key: Record::new(Form::Mxfp4, index_dim),
            open: Record::new(Form::F32, 2 * head_dim),
        }
    }

    /// Window entries of a layer or draft stage.
    pub fn window(&self) -> Cache {
        let (record, pages) = (self.window, Sym::WindowPages);
        Cache { record, page_entries: WINDOW_PAGE_TOKENS, pages }
    }

    /// Compressed entries of a source that pools `ratio` tokens into one.
    pub fn latent(&self, ratio: u64) -> Cache {
        Cache { record: self.latent, page_entries: PAGE_TOKENS / ratio, pages: Sym::Pages }
    }

    /// Index keys of such a source.
    pub fn key(&self, ratio: u64) -> Cache {
        Cache { record: self.key, page_entries: PAGE_TOKENS / ratio, pages: Sym::Pages }
    }

    /// Rows `[value | gate]` of the tokens of open groups.
    pub fn open(&self) -> Cache {
        let (record, pages) = (self.open, Sym::OpenPages);
        Cache { record, page_entries: OPEN_PAGE_TOKENS, pages }
    }

    /// Bytes of all windows.
    pub fn window_bytes(&self, config: &Config, pools: &Pools) -> u64 {
        window_count(config) as u64 * reserved_bytes(&self.window(), pools)
    }

    /// Bytes of all compressed entries and index keys.
    pub fn compressed_bytes(&self, config: &Config, pools: &Pools) -> u64 {
        let source = |ratio| {
            reserved_bytes(&self.latent(ratio), pools) + reserved_bytes(&self.key(ratio), pools)
        };
        sources(config).map(|(_, ratio)| source(ratio)).sum()
    }

    /// Bytes of the open groups of all sources that have any.
    pub fn open_bytes(&self, config: &Config, pools: &Pools) -> u64 {
        let gated = sources(config).filter(|(_, ratio)| *ratio > 1).count() as u64;
        gated * reserved_bytes(&self.open(), pools)
    }
}

/// The caches of one compressed source.
#[derive(Debug, Clone)]
pub struct SourceCaches {
    /// The layer that writes them.
    pub layer: usize,
    /// Tokens of an entry.
    pub ratio: u64,
    /// `[pages, 64 / ratio]` compressed entries.
    pub latents: View,
    /// `[pages, 64 / ratio]` index keys.
    pub keys: View,
    /// `[open pages, 8]` rows of open groups; `None` at ratio 1, where no group is open.
    pub open: Option<View>,
}

/// Every cache of a model on one device.
#[derive(Debug, Clone)]
pub struct Caches {
    /// `[window pages, 32]` per backbone layer, then per draft stage.
    pub windows: Vec<View>,
    /// In order of their layers.
    pub sources: Vec<SourceCaches>,
}

impl Caches {
    /// Reserves all caches of a configuration. Entries are unspecified until they are written.
    ///
    /// # Errors
    /// [`tandem_hal::Error::OutOfMemory`] when the device has less.
    pub fn new(device: &dyn Device, config: &Config, pools: &Pools) -> Result<Self> {
        Self::with_formats(device, config, &CacheFormats::of(config), pools)
    }

    /// As [`Caches::new`], with records that need not be the model's own.
    ///
    /// # Errors
    /// As [`Caches::new`].
    pub fn with_formats(
        device: &dyn Device,
        config: &Config,
        formats: &CacheFormats,
        pools: &Pools,
    ) -> Result<Self> {
        let arena = |purpose, bytes| Arena::new(device, bytes, purpose);
        let mut windows = arena("caches.window", formats.window_bytes(config, pools))?;
        let mut compressed = arena("caches.compressed", formats.compressed_bytes(config, pools))?;
        let mut open = arena("caches.open", formats.open_bytes(config, pools))?;
        let window = formats.window();
        Ok(Self {
            windows: (0..window_count(config))
                .map(|_| carve(&mut windows, &window, pools))
                .collect::<Result<_>>()?,
            sources: sources(config)
                .map(|(layer, ratio)| {
                    Ok(SourceCaches {
                        layer,
                        ratio,
                        latents: carve(&mut compressed, &formats.latent(ratio), pools)?,
                        keys: carve(&mut compressed, &formats.key(ratio), pools)?,
                        open: (ratio > 1)
                            .then(|| carve(&mut open, &formats.open(), pools))
                            .transpose()?,
                    })
                })
                .collect::<Result<_>>()?,
        })
    }

    /// Those of a kind, in order.
    pub fn of_kind(&self, kind: PageKind) -> Vec<View> {
        match kind {
            PageKind::Window => self.windows.clone(),
            PageKind::Compressed => {
                let both = |source: &SourceCaches| [source.latents.clone(), source.keys.clone()];
                self.sources.iter().flat_map(both).collect()
            }
        }
    }

    /// The caches of the source that is `layer`.
    ///
    /// # Panics
    /// When the layer owns none: the topology of a checked configuration names owners only.
    pub fn source(&self, layer: usize) -> &SourceCaches {
        let source = self.sources.iter().find(|source| source.layer == layer);
        source.expect("the topology names layers that own a compressed cache")
    }
}

/// Backbone layers and draft stages.
fn window_count(config: &Config) -> usize {
    config.layers + config.dspark.as_ref().map_or(0, |dspark| dspark.stages)
}

/// Layers that own a compressed cache, each with its ratio.
fn sources(config: &Config) -> impl Iterator<Item = (usize, u64)> + '_ {
    let compression = &config.compression;
    compression.kv_sources.iter().map(|layer| (*layer, compression.ratios[*layer] as u64))
}

fn shape(cache: &Cache, pools: &Pools) -> [u64; 2] {
    let pages = match cache.pages {
        Sym::WindowPages => pools.window_pages,
        Sym::OpenPages => pools.open_pages,
        _ => pools.pages,
    };
    [pages, cache.page_entries]
}

fn reserved_bytes(cache: &Cache, pools: &Pools) -> u64 {
    View::reserved_bytes(Enc::Record(cache.record), &shape(cache, pools))
}

fn carve(arena: &mut Arena, cache: &Cache, pools: &Pools) -> Result<View> {
    arena.view(Enc::Record(cache.record), &shape(cache, pools))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_keeps_its_published_bytes() {
        let config = Config::named("v4.1-flash").unwrap();
        let pools = Pools { pages: 1024, window_pages: 4, open_pages: 1 };
        // 890 bytes per token, 528 per window slot of 43 layers, 4096 per open row of three sources.
        let formats = CacheFormats::of(&config);
        assert_eq!(formats.compressed_bytes(&config, &pools), 890 * 1024 * PAGE_TOKENS);
        assert_eq!(formats.window_bytes(&config, &pools), 43 * 128 * 528);
        assert_eq!(formats.open_bytes(&config, &pools), 3 * 8 * 4096);
    }
}
