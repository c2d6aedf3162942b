//! Picking the best of a row of scores.

/// Where a score stands, as an integer: NaN below everything, both zeros alike.
fn standing(score: f32) -> u32 {
    const SIGN: u32 = 1 << 31;
    // Adding zero turns minus zero into zero.
    let bits = (score + 0.0).to_bits();
    match bits {
        _ if score.is_nan() => 0,
        _ if bits & SIGN != 0 => !bits,
        _ => bits | SIGN,
    }
}

/// The `count` best of `scored` (index, score), ties to the lower index; ascending.
pub(super) fn best(scored: impl Iterator<Item = (usize, f32)>, count: usize) -> Vec<i32> {
    // One integer each, so that the order is total: standing, then the complement of the index.
    let key = |(i, s): (usize, f32)| u64::from(standing(s)) << 32 | u64::from(!(i as u32));
    let mut keys: Vec<u64> = scored.map(key).collect();
    if count < keys.len() {
        if count > 0 {
            keys.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
        }
        keys.truncate(count);
    }
    let mut indices: Vec<i32> = keys.iter().map(|key| !(*key as u32) as i32).collect();
    indices.sort_unstable();
    indices
}

/// The list, padded to `length` with -1.
pub(super) fn padded(mut list: Vec<i32>, length: usize) -> Vec<i32> {
    list.resize(length, -1);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standings_order_as_the_page_says() {
        let ascending =
            [f32::NAN, f32::NEG_INFINITY, f32::MIN, -1.0, -1e-45, 0.0, 1e-45, 1.0, f32::INFINITY];
        assert!(ascending.windows(2).all(|w| standing(w[0]) < standing(w[1])));
        assert_eq!(standing(-0.0), standing(0.0));
        assert_eq!(standing(-f32::NAN), standing(f32::NAN));
    }
}
