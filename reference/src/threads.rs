//! Work over threads, when there is enough of it.

use rayon::prelude::*;

/// Operations, about a nanosecond each, below which waking threads costs more than it brings.
const WORTH: usize = 50_000;

/// Calls `f` on every item: over threads when items of `operations` each add up to enough, one
/// after the other otherwise. Items must not depend on each other.
pub(crate) fn each<T: Send>(items: Vec<T>, operations: usize, f: impl Fn(T) + Send + Sync) {
    if items.len().saturating_mul(operations) < WORTH {
        return items.into_iter().for_each(f);
    }
    let least = (WORTH / 4).div_ceil(operations.max(1));
    items.into_par_iter().with_min_len(least).for_each(f);
}

/// `f(0) … f(n - 1)`, in order, over threads as [`each`] decides.
pub(crate) fn collect<T: Send>(
    n: usize,
    operations: usize,
    f: impl Fn(usize) -> T + Send + Sync,
) -> Vec<T> {
    let mut items: Vec<Option<T>> = (0..n).map(|_| None).collect();
    each(items.iter_mut().enumerate().collect(), operations, |(i, item)| *item = Some(f(i)));
    items.into_iter().map(|item| item.expect("every item is met")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_met_once_on_either_path() {
        for operations in [0, 1, 1 << 20] {
            let mut seen = vec![0u32; 100];
            each(seen.iter_mut().enumerate().collect(), operations, |(i, n)| *n += i as u32);
            assert!(seen.iter().enumerate().all(|(i, n)| *n == i as u32));
            assert_eq!(collect(100, operations, |i| i as u32), seen);
        }
    }
}
