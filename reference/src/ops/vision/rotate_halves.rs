//! Card of [`RotateHalves`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, Real, Result, RotateHalves, RotateHalvesIo, Sym};

/// Angles of a patch: those of its row, then those of its column.
pub(super) fn angles(frequencies: &[f32], row: i32, column: i32) -> Vec<f32> {
    let of = |position: i32| frequencies.iter().map(move |f| position as f32 * f);
    of(row).chain(of(column)).collect()
}

/// Every head of a row turned by `angles`.
fn turned(x: &[f32], head_dim: usize, angles: &[f32]) -> Vec<f64> {
    let turn = |angle: &f32| {
        let angle = f64::from(*angle);
        (f64::from(libm::cos(angle) as f32), f64::from(libm::sin(angle) as f32))
    };
    let turns: Vec<(f64, f64)> = angles.iter().map(turn).collect();
    let mut result = Vec::with_capacity(x.len());
    for head in x.chunks_exact(head_dim) {
        let (a, b) = head.split_at(head_dim / 2);
        let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b))).zip(&turns);
        result.extend(pairs().map(|((a, b), (c, s))| a * c - b * s));
        result.extend(pairs().map(|((a, b), (c, s))| b * c + a * s));
    }
    result
}

/// `|a| + |b|` of every element: a sine or cosine is off by so much of one.
fn magnitudes(x: &[f32], head_dim: usize) -> Vec<f64> {
    let half = head_dim / 2;
    let pair = |i: usize| f64::from(x[i].abs()) + f64::from(x[i + half].abs());
    let first = |i: usize| i / head_dim * head_dim + i % half;
    (0..x.len()).map(|i| pair(first(i))).collect()
}

fn case(heads: u64, head_dim: u64, tokens: u64) -> (RotateHalves, Extents) {
    let base = Real::new(10_000.0);
    (RotateHalves { heads, head_dim, base }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for RotateHalves {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RotateHalvesIo { mut x, row, column } = io;
        let (frequencies, head_dim) = (self.frequencies(), self.head_dim as usize);
        for t in 0..x.rows() {
            let old = x.read().row(t).into_owned();
            let (r, c) = (row.int(0, t), column.int(0, t));
            if r >= 0 && c >= 0 {
                x.set_row(t, &turned(&old, head_dim, &angles(&frequencies, r, c)));
                x.set_magnitude(t, &magnitudes(&old, head_dim));
            } else {
                x.set_magnitude(t, &old.iter().map(|v| f64::from(v.abs())).collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    /// Two products and a sum in fp32, and two ulps each of sine and cosine.
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: 4.0 * f64::from(f32::EPSILON) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 4), choices.pick(&[4, 8, 12, 32, 64]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 4, 1), case(2, 8, 0), case(16, 64, 20)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1610, 9198].iter().map(|t| case(16, 64, *t)).collect()
    }
}
