//! The bytes that a sequence's caches hold, by what they stand for.

use std::collections::HashMap;
use tandem_engine::kv::Snapshot;
use tandem_engine::model::v41::Resident;
use tandem_hal::{Stream, View};

/// The bytes of live entries, by cache and entry.
pub type Live = HashMap<(String, u64), Vec<u8>>;

/// Entry and address of the live entries of one kind of cache.
type Entries = fn(&Snapshot) -> &[(u64, i32)];

struct Cache {
    name: String,
    entries: Entries,
    record: usize,
    bytes: Vec<u8>,
}

/// Every cache as it was at one time, those of the draft stages included.
pub struct CacheBytes(Vec<Cache>);

impl CacheBytes {
    pub fn read(model: &Resident, on: &dyn Stream) -> Self {
        let mut caches = Vec::new();
        let mut take = |name: String, view: &View, entries: Entries| {
            let bytes = on.read(view).unwrap();
            let record = view.enc().unit_bits() as usize / 8;
            caches.push(Cache { name, entries, record, bytes });
        };
        let views = model.caches();
        for (layer, window) in views.windows.iter().enumerate() {
            take(format!("window {layer}"), window, |snapshot| &snapshot.window);
        }
        for source in &views.sources {
            let entries: Entries = match source.ratio {
                1 => |snapshot| &snapshot.ratio1,
                _ => |snapshot| &snapshot.ratio2,
            };
            take(format!("latents {}", source.layer), &source.latents, entries);
            take(format!("keys {}", source.layer), &source.keys, entries);
            if let Some(open) = &source.open {
                take(format!("open {}", source.layer), open, |snapshot| &snapshot.open);
            }
        }
        Self(caches)
    }

    /// Those of one sequence.
    pub fn live(&self, snapshot: &Snapshot) -> Live {
        assert!(snapshot.is_whole());
        let mut live = HashMap::new();
        for cache in &self.0 {
            for (entry, address) in (cache.entries)(snapshot) {
                let at = *address as usize * cache.record;
                let bytes = cache.bytes[at..at + cache.record].to_vec();
                live.insert((cache.name.clone(), *entry), bytes);
            }
        }
        live
    }
}
