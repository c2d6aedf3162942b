//! The prefix cache by itself: what makes two prefixes equal, what goes first, what stays.

use proptest::prelude::*;
use tandem_engine::kv::{PagePools, PoolPages, Prefix, PrefixCache, PrefixPicture, SequencePages};

const WINDOW: u64 = 128;
const PAGES: u64 = 256;

fn pools() -> PagePools {
    PagePools::new(PoolPages { compressed: PAGES, window: 256, open: 64 })
}

fn text(tokens: &[u32]) -> Prefix<'_> {
    Prefix { tokens, pictures: &[], salt: "" }
}

/// Ids of `pages` pages that depend on a number, and one more.
fn ids(number: u32, pages: u32) -> Vec<u32> {
    (0..=pages * 64).map(|at| number * 1000 + at % 50).collect()
}

/// A sequence that computed a prefix, has shared its whole pages and is over.
fn leave(pools: &PagePools, cache: &mut PrefixCache, prefix: &Prefix<'_>) {
    let hit = cache.find(prefix);
    let matched_tokens = hit.matched_tokens;
    let mut pages = SequencePages::resumed(pools, WINDOW, hit);
    let tokens = prefix.tokens.len() as u64 - pages.tokens();
    let step = pages.begin(tokens).unwrap();
    pages.commit(step, tokens);
    let mut before = None;
    for at in 0..prefix.tokens.len() / 64 {
        before = Some(pages.share(cache, before, prefix, at));
    }
    pools.check([&pages].into_iter(), &[], cache).unwrap();
    assert!(cache.find(prefix).matched_tokens >= matched_tokens);
}

#[test]
fn whatever_differs_is_another_prefix() {
    let (pools, mut cache) = (pools(), PrefixCache::new(8));
    let tokens = ids(1, 4);
    let picture =
        |start, digest| PrefixPicture { positions: start..start + 70, digest: [digest; 32] };
    let pictures = [picture(80, 1)];
    let prefix = Prefix { tokens: &tokens, pictures: &pictures, salt: "a" };
    leave(&pools, &mut cache, &prefix);
    let mut matched = |prefix: Prefix<'_>| cache.find(&prefix).matched_tokens;
    assert_eq!(matched(prefix), 256);
    assert_eq!(matched(Prefix { tokens: &tokens[..256], ..prefix }), 192, "one is left to compute");
    // From the page on that holds the difference.
    for (pictures, expected) in [
        (vec![picture(80, 2)], 64),
        (vec![picture(81, 1)], 64),
        (vec![], 64),
        (vec![picture(80, 1), picture(200, 1)], 192),
    ] {
        assert_eq!(matched(Prefix { pictures: &pictures, ..prefix }), expected, "{pictures:?}");
    }
    assert_eq!(matched(Prefix { salt: "b", ..prefix }), 0);
    for at in 0..tokens.len() {
        let mut other = tokens.clone();
        other[at] += 1;
        let expected = (at as u64 / 64 * 64).min(256);
        assert_eq!(matched(Prefix { tokens: &other, ..prefix }), expected, "token {at}");
    }
}

#[test]
fn what_was_used_last_goes_last_and_ends_go_first() {
    let (pools, mut cache) = (pools(), PrefixCache::new(8));
    let all = [ids(1, 3), ids(2, 3), ids(3, 3)];
    for ids in &all {
        leave(&pools, &mut cache, &text(ids));
    }
    assert_eq!((cache.blocks(), cache.idle_pages()), (9, 9));
    cache.find(&text(&all[0]));
    let mut matched = |evicted| {
        assert_eq!(cache.evict(evicted), evicted);
        cache.check().unwrap();
        // Looking does not count as use here: in the order they go.
        [1, 2, 0].map(|at| cache.find(&text(&all[at])).matched_tokens / 64)
    };
    assert_eq!(matched(1), [2, 3, 3]);
    assert_eq!(matched(2), [0, 3, 3]);
    assert_eq!(matched(4), [0, 0, 2]);
    assert_eq!(cache.evict(100), 2);
    assert_eq!((cache.blocks(), cache.idle_pages()), (0, 0));
    assert_eq!(pools.free().compressed, PAGES);
}

#[test]
fn what_is_read_stays() {
    let (pools, mut cache) = (pools(), PrefixCache::new(8));
    let tokens = ids(1, 3);
    let mut pages = SequencePages::resumed(&pools, WINDOW, cache.find(&text(&tokens)));
    let step = pages.begin(193).unwrap();
    pages.commit(step, 193);
    let first = pages.share(&mut cache, None, &text(&tokens), 0);
    pages.share(&mut cache, Some(first), &text(&tokens), 1);
    let table = pages.table().to_vec();
    assert_eq!((cache.idle_pages(), cache.evict(10)), (0, 0));
    assert_eq!(pages.table(), table);
    pools.check([&pages].into_iter(), &[], &cache).unwrap();
    drop(pages);
    assert_eq!((cache.idle_pages(), cache.evict(10)), (2, 2));
}

#[test]
fn equal_pages_of_two_sequences_become_one() {
    let (pools, mut cache) = (pools(), PrefixCache::new(8));
    let tokens = ids(1, 2);
    let mut both: Vec<_> = (0..2)
        .map(|_| {
            let mut pages = SequencePages::resumed(&pools, WINDOW, cache.find(&text(&tokens)));
            let step = pages.begin(129).unwrap();
            pages.commit(step, 129);
            pages
        })
        .collect();
    assert_eq!(pools.free().compressed, PAGES - 6);
    for pages in &mut both {
        let first = pages.share(&mut cache, None, &text(&tokens), 0);
        pages.share(&mut cache, Some(first), &text(&tokens), 1);
    }
    assert_eq!(pools.free().compressed, PAGES - 4);
    let shared: Vec<Vec<_>> = both.iter().map(|pages| pages.table()[..2].to_vec()).collect();
    assert_eq!(shared[0], shared[1]);
    pools.check(both.iter(), &[], &cache).unwrap();
}

proptest! {
    /// Chains that fork anywhere, come and go, and are given up in part: pages are conserved, and what
    /// is found is what was left.
    #[test]
    fn pages_are_conserved(
        steps in prop::collection::vec((0u32..3, 0u32..3, 1u32..4, 1u32..4, 0u64..6), 1..30)
    ) {
        let (pools, mut cache) = (pools(), PrefixCache::new(4));
        for (family, fork, shared, own, evicted) in steps {
            let mut tokens = ids(family, shared);
            tokens.pop();
            tokens.extend(ids(100 + fork, own));
            leave(&pools, &mut cache, &text(&tokens));
            prop_assert_eq!(cache.find(&text(&tokens)).matched_tokens, u64::from(shared + own) * 64);
            cache.evict(evicted);
            cache.check().unwrap();
            let held = cache.blocks() as u64;
            prop_assert_eq!((pools.free().compressed, cache.idle_pages()), (PAGES - held, held));
        }
    }
}
