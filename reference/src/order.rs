//! The order of every choice: larger first, ties to the lower place, NaN behind every number.

use std::cmp::Ordering;

/// How places `a` and `b` of `keys` are ordered, the better one first.
#[inline(always)]
pub(crate) fn falling(keys: &[f32], a: usize, b: usize) -> Ordering {
    let (x, y) = (keys[a], keys[b]);
    let by_key = y.partial_cmp(&x).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()));
    by_key.then(a.cmp(&b))
}

/// The places of the `k` best keys, best first; all of them when there are fewer.
pub(crate) fn best(keys: &[f32], k: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..keys.len()).collect();
    if k < places.len() {
        places.select_nth_unstable_by(k, |a, b| falling(keys, *a, *b));
        places.truncate(k);
    }
    places.sort_unstable_by(|a, b| falling(keys, *a, *b));
    places
}

/// The place of the best key; 0 when there is none.
pub(crate) fn first(keys: &[f32]) -> usize {
    (0..keys.len()).reduce(|a, b| if falling(keys, a, b).is_le() { a } else { b }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_nan_and_lower_places_before_higher() {
        let keys = [f32::NAN, 1.0, f32::NEG_INFINITY, 1.0, f32::INFINITY, -0.0, 0.0];
        assert_eq!(best(&keys, 7), [4, 1, 3, 5, 6, 2, 0]);
        assert_eq!(best(&keys, 3), [4, 1, 3]);
        assert_eq!(best(&keys, 9).len(), 7);
        assert_eq!(first(&keys), 4);
        assert_eq!((first(&[f32::NAN, f32::NAN]), first(&[])), (0, 0));
    }
}
