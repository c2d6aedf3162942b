//! Distances between what a device made and what the golden file holds.

/// Share of elements that differ; NaN differs from everything. 0 for none.
pub fn unequal_share(got: &[f32], golden: &[f32]) -> f64 {
    assert_eq!(got.len(), golden.len(), "compared tensors have one shape");
    let unequal = got.iter().zip(golden).filter(|(a, b)| a != b || a.is_nan()).count();
    if golden.is_empty() { 0.0 } else { unequal as f64 / golden.len() as f64 }
}

/// `|got - golden| / |golden|` in the Euclidean norm; infinite when only the golden one is zero, and
/// for anything that is not finite.
pub fn relative_distance(got: &[f32], golden: &[f32]) -> f64 {
    assert_eq!(got.len(), golden.len(), "compared tensors have one shape");
    let square = |x: f64| x * x;
    let distance: f64 =
        got.iter().zip(golden).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    let size: f64 = golden.iter().map(|b| square(f64::from(*b))).sum();
    if distance == 0.0 {
        return 0.0;
    }
    let ratio = (distance / size).sqrt();
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// Share of the rows in which both sides hold the same set of ids; -1 is padding.
pub fn equal_share<'a>(rows: impl Iterator<Item = (&'a [i32], &'a [i32])>) -> f64 {
    let set = |ids: &[i32]| {
        let mut ids: Vec<i32> = ids.iter().copied().filter(|i| *i >= 0).collect();
        ids.sort_unstable();
        ids
    };
    let (mut equal, mut all) = (0u64, 0u64);
    for (got, golden) in rows {
        all += 1;
        equal += u64::from(set(got) == set(golden));
    }
    if all == 0 { 1.0 } else { equal as f64 / all as f64 }
}

/// The value below which a share of the values lies: the nearest rank, 0 for none.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

/// The middle value, the lower of two.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_distances() {
        assert_eq!(unequal_share(&[1.0, 2.0, f32::NAN, 4.0], &[1.0, 3.0, f32::NAN, 4.0]), 0.5);
        assert_eq!(unequal_share(&[], &[]), 0.0);
        assert_eq!(relative_distance(&[3.0, 4.0], &[3.0, 4.0]), 0.0);
        assert_eq!(relative_distance(&[0.0, 0.0], &[3.0, 4.0]), 1.0);
        assert_eq!(relative_distance(&[f32::NAN], &[1.0]), f64::INFINITY);
        assert_eq!(relative_distance(&[1.0], &[0.0]), f64::INFINITY);
    }

    #[test]
    fn sets_ignore_order_and_padding() {
        let rows = [([3, 1, -1].as_slice(), [1, 3, -1].as_slice()), (&[1, 2], &[1, 3])];
        assert_eq!(equal_share(rows.into_iter()), 0.5);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(median(&values), 100.0);
        assert_eq!(percentile(&values, 0.99), 198.0);
        assert_eq!(percentile(&[7.0], 0.01), 7.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }
}
