//! The oracle: formats as lists of values, encoding as a count of the midpoints below.

/// Magnitudes of a sign-exponent-mantissa format by code, from the textbook formula in f64.
pub(super) fn magnitudes(codes: u32, mantissa_bits: u32, bias: i32) -> Vec<f64> {
    let steps = 1 << mantissa_bits;
    (0..codes)
        .map(|code| {
            let (exponent, mantissa) = ((code / steps) as i32, code % steps);
            let fraction = f64::from(mantissa) / f64::from(steps);
            match exponent {
                0 => fraction * 2f64.powi(1 - bias),
                _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
            }
        })
        .collect()
}

pub(super) fn e4m3fn() -> Vec<f64> {
    magnitudes(0x7F, 3, 7)
}

pub(super) fn e4m3fnuz() -> Vec<f64> {
    magnitudes(0x80, 3, 8)
}

pub(super) fn e2m1() -> Vec<f64> {
    magnitudes(8, 1, 1)
}

/// Magnitudes of bf16, with 2^128 in the place of infinity: the value that rounding to nearest
/// treats as the next one.
pub(super) fn bf16() -> Vec<f64> {
    magnitudes(0x7F81, 7, 127)
}

/// Midpoints between neighbours of an ascending list; exact in f64 for every format here.
pub(super) fn midpoints(values: &[f64]) -> Vec<f64> {
    values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect()
}

/// Code of the magnitude nearest to `x`, ties to the even code, given the format's midpoints.
/// Values above the last midpoint get the last code.
pub(super) fn nearest(x: f64, midpoints: &[f64]) -> usize {
    let below = midpoints.partition_point(|&midpoint| midpoint < x);
    let tie = midpoints.get(below) == Some(&x);
    below + usize::from(tie && below % 2 == 1)
}

/// Every value and midpoint of the format as f32 with its neighbours, both signs, and the ends of
/// f32; then `random` bit patterns, half of them with exponents where the format lives.
pub(super) fn inputs(values: &[f64], random: usize) -> Vec<f32> {
    let edges = [0, 1, 2, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0x7F7F_FFFE, 0x7F7F_FFFF, 0x7F80_0000];
    let mut magnitudes: Vec<u32> = edges.to_vec();
    for x in values.iter().copied().chain(midpoints(values)) {
        let bits = (x as f32).to_bits();
        magnitudes.extend(bits.saturating_sub(2)..=bits + 2);
    }
    let mut bits: Vec<u32> = magnitudes.iter().flat_map(|&m| [m, m | 0x8000_0000]).collect();
    let mut stream = Random(0x7A4D);
    for i in 0..random {
        let draw = (stream.next() >> 32) as u32;
        let near = (draw & 0x807F_FFFF) | ((110 + (draw >> 23) % 32) << 23);
        bits.push(if i % 2 == 0 { draw } else { near });
    }
    bits.into_iter().map(f32::from_bits).collect()
}

/// SplitMix64: the seed is the case.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[test]
fn the_oracle_knows_its_neighbours() {
    let midpoints = midpoints(&e2m1());
    assert_eq!(midpoints, [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]);
    let codes = [0.0, 0.25, 0.26, 0.75, 1.25, 1.26, 5.0, 5.1, 9.0].map(|x| nearest(x, &midpoints));
    assert_eq!(codes, [0, 0, 1, 2, 2, 3, 6, 7, 7]);
}
