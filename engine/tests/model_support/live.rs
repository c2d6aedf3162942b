//! The bytes that a sequence's caches hold, by what they stand for.

use std::collections::{HashMap, HashSet};
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

/// The caches of a model, each with its name and its part of a snapshot.
fn views(model: &Resident) -> Vec<(String, View, Entries)> {
    let mut views: Vec<(String, View, Entries)> = Vec::new();
    let caches = model.caches();
    for (layer, window) in caches.windows.iter().enumerate() {
        views.push((format!("window {layer}"), window.clone(), |snapshot| &snapshot.window));
    }
    for source in &caches.sources {
        let entries: Entries = match source.ratio {
            1 => |snapshot| &snapshot.ratio1,
            _ => |snapshot| &snapshot.ratio2,
        };
        views.push((format!("latents {}", source.layer), source.latents.clone(), entries));
        views.push((format!("keys {}", source.layer), source.keys.clone(), entries));
        if let Some(open) = &source.open {
            let name = format!("open {}", source.layer);
            views.push((name, open.clone(), |snapshot| &snapshot.open));
        }
    }
    views
}

/// Puts a pattern into every cache that no two neighbouring records share.
pub fn fill(model: &Resident, on: &dyn Stream) {
    for (_, view, _) in views(model) {
        let pattern = |at: u64| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        let bytes: Vec<u8> = (0..view.bytes()).map(pattern).collect();
        on.write(&view, &bytes).unwrap();
    }
}

/// Every cache as it was at one time, those of the draft stages included.
pub struct CacheBytes(Vec<Cache>);

impl CacheBytes {
    pub fn read(model: &Resident, on: &dyn Stream) -> Self {
        let read = |(name, view, entries): (String, View, Entries)| {
            let record = view.enc().unit_bits() as usize / 8;
            Cache { name, entries, record, bytes: on.read(&view).unwrap() }
        };
        Self(views(model).into_iter().map(read).collect())
    }

    /// Records that are not as they were `before`: how many at addresses in `written`, and the
    /// names of all others.
    pub fn changed(&self, before: &Self, written: &Snapshot) -> (u64, Vec<(String, i32)>) {
        let (mut own, mut strays) = (0, Vec::new());
        for (now, before) in self.0.iter().zip(&before.0) {
            let addresses: HashSet<i32> =
                (now.entries)(written).iter().map(|(_, at)| *at).collect();
            let records = now.bytes.chunks(now.record).zip(before.bytes.chunks(now.record));
            for (address, _) in (0..).zip(records).filter(|(_, (now, before))| now != before) {
                if addresses.contains(&address) {
                    own += 1;
                } else {
                    strays.push((now.name.clone(), address));
                }
            }
        }
        (own, strays)
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
