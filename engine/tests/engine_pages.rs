//! Pages of sequences: taking, rolling, rollback.

use proptest::prelude::*;
use tandem_engine::kv::{PagePools, PoolPages, PrefixCache, SequencePages};

const WINDOW: u64 = 128;

fn pools(compressed: u64, window: u64, open: u64) -> PagePools {
    PagePools::new(PoolPages { compressed, window, open })
}

/// A sequence of `tokens` positions reached in steps of `chunk`.
fn filled(pools: &PagePools, tokens: u64, chunk: u64) -> SequencePages {
    let mut pages = SequencePages::new(pools, WINDOW);
    while pages.tokens() < tokens {
        let count = chunk.min(tokens - pages.tokens());
        let step = pages.begin(count).unwrap();
        pages.commit(step, count);
    }
    pages
}

/// The entries that are alive, without where they lie.
fn entries(pages: &SequencePages) -> [Vec<u64>; 4] {
    let snapshot = pages.snapshot();
    assert!(snapshot.is_whole(), "every live entry has an address");
    let names = |list: &[(u64, i32)]| list.iter().map(|(entry, _)| *entry).collect();
    [&snapshot.window, &snapshot.open, &snapshot.ratio1, &snapshot.ratio2].map(|list| names(list))
}

#[test]
fn every_rollback_leaves_what_no_draft_leaves() {
    for start in 1..=2 * WINDOW + 3 {
        for kept in 1..=6 {
            let (drafting, plain) = (pools(16, 32, 32), pools(16, 32, 32));
            let mut drafted = filled(&drafting, start, 7);
            let before = drafted.snapshot();
            let step = drafted.begin(6).unwrap();
            // Writing six rows touches no entry that was alive before.
            for (at, address) in &before.window {
                assert_eq!(drafted.window_address(*at), *address);
            }
            drafted.commit(step, kept);
            let alone = filled(&plain, start + kept, 1);
            assert_eq!(drafted.tokens(), alone.tokens());
            assert_eq!(entries(&drafted), entries(&alone), "start {start}, kept {kept}");
            assert_eq!(drafting.free(), plain.free(), "start {start}, kept {kept}");
            drafting.check([&drafted].into_iter(), &[], &PrefixCache::new(0)).unwrap();
        }
    }
}

#[test]
fn undoing_a_step_restores_addresses() {
    for start in [0, 1, 31, 63, 64, 127, 128, 129, 255] {
        let pools = pools(16, 32, 64);
        let mut pages = filled(&pools, start, 5);
        let (before, free) = (pages.snapshot(), pools.free());
        let step = pages.begin(100).unwrap();
        pages.commit(step, 0);
        assert_eq!((pages.snapshot(), pools.free()), (before, free), "start {start}");
    }
}

#[test]
fn c061_c062_running_out_changes_nothing() {
    for (name, pools) in [
        ("compressed cache", pools(2, 32, 64)),
        ("window cache", pools(16, 5, 64)),
        ("open groups", pools(16, 32, 3)),
    ] {
        let mut pages = filled(&pools, 100, 6);
        let (before, free) = (pages.snapshot(), pools.free());
        let refused = pages.begin(80).unwrap_err();
        assert_eq!(refused.pool, name);
        assert!(refused.to_string().contains("pages wanted"), "{refused}");
        assert_eq!((pages.snapshot(), pools.free()), (before, free));
        pools.check([&pages].into_iter(), &[], &PrefixCache::new(0)).unwrap();
        let step = pages.begin(1).unwrap();
        pages.commit(step, 1);
    }
}

#[test]
fn windows_and_groups_roll_and_everything_comes_back() {
    let pools = pools(64, 16, 8);
    let mut pages = SequencePages::new(&pools, WINDOW);
    for token in 0..2000u64 {
        let step = pages.begin(1).unwrap();
        assert!(pages.window_address(token) >= 0 && pages.open_address(token) >= 0);
        pages.commit(step, 1);
        assert!(pages.window_pages().count() <= 6, "at {token}");
        assert!(pages.open_pages().count() <= 1, "at {token}");
    }
    assert_eq!(pages.compressed_pages().count(), 32);
    drop(pages);
    let free = pools.free();
    assert_eq!((free.compressed, free.window, free.open), (64, 16, 8));
}

#[test]
fn addresses_are_pages_and_slots() {
    let pools = pools(4, 16, 16);
    let first = pools.compressed.take(1).unwrap();
    let pages = filled(&pools, 70, 70);
    drop(first);
    assert_eq!(pages.table(), [1, 2]);
    assert_eq!([0, 63, 64, 69].map(|entry| pages.entry_address(1, entry)), [64, 127, 128, 133]);
    assert_eq!([0, 31, 32, 34].map(|entry| pages.entry_address(2, entry)), [32, 63, 64, 66]);
    assert_eq!(pages.entry_address(1, 128), -1);
    assert_eq!(pages.window_address(69) % 32, 5);
    assert_eq!(pages.window_address(96), -1);
}

proptest! {
    #[test]
    fn any_steps_conserve_pages(
        steps in prop::collection::vec((0usize..4, 0u64..90, 0u64..90, any::<bool>()), 1..60)
    ) {
        let pools = pools(12, 24, 40);
        let mut sequences: Vec<SequencePages> =
            (0..4).map(|_| SequencePages::new(&pools, WINDOW)).collect();
        for (at, count, kept, ends) in steps {
            if ends {
                sequences[at] = SequencePages::new(&pools, WINDOW);
            }
            let sequence = &mut sequences[at];
            if let Ok(step) = sequence.begin(count) {
                sequence.commit(step, kept.min(count));
            }
            prop_assert!(sequence.snapshot().is_whole());
            pools.check(sequences.iter(), &[], &PrefixCache::new(0)).unwrap();
            let mut owned = std::collections::HashSet::new();
            for (_, address) in sequences.iter().flat_map(|s| s.snapshot().ratio1) {
                prop_assert!(owned.insert(address), "an entry of two sequences");
            }
        }
        drop(sequences);
        prop_assert_eq!(pools.free(), PoolPages { compressed: 12, window: 24, open: 40 });
    }
}
