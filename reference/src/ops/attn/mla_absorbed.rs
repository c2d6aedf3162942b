//! Card of [`MlaAbsorbed`].

use super::mla_expanded::{edges, magnitudes, seen, sizes, softmax, tolerance};
use crate::{Card, Choices, Context, Host, Tolerance, sum};
use tandem_hal::{Extents, Mla, MlaAbsorbed, Result};

/// The query of a head against latents, `uk_hᵀ q_nope`.
fn absorbed(mla: &Mla, io: &Host<'_, MlaAbsorbed>, head: usize, q: &[f32]) -> Vec<f64> {
    let nope = mla.nope as usize;
    let rows: Vec<_> = (0..nope).map(|i| io.uk.row(head * nope + i)).collect();
    let column = |c: usize| sum::total(nope, |i| f64::from(rows[i][c]) * f64::from(q[i]));
    (0..mla.latent as usize).map(column).collect()
}

/// One head's softmax over `seen` keys, and its value `uv_h Σ p_j c_j`.
fn attend(
    mla: &Mla,
    io: &Host<'_, MlaAbsorbed>,
    head: usize,
    q: &[f32],
    seen: usize,
) -> (Vec<f64>, Vec<f64>) {
    let (nope, latent) = (mla.nope as usize, mla.latent as usize);
    let query = absorbed(mla, io, head, &q[..nope]);
    let score = |j: usize| {
        let (c, rope) = (io.latent.row(j), io.k_rope.row(j));
        let plain = sum::total(latent, |i| query[i] * f64::from(c[i]));
        f64::from(mla.scale.value()) * (plain + sum::dot(&q[nope..], &rope))
    };
    let weights = softmax(&(0..seen).map(score).collect::<Vec<_>>());
    let mut mean = vec![0.0; latent];
    for (j, p) in weights.iter().enumerate() {
        mean.iter_mut().zip(io.latent.row(j).iter()).for_each(|(m, c)| *m += p * f64::from(*c));
    }
    let value = |i: usize| {
        let row = io.uv.row(head * mla.value as usize + i);
        sum::total(latent, |c| f64::from(row[c]) * mean[c])
    };
    let y = if seen == 0 {
        vec![0.0; mla.value as usize]
    } else {
        (0..mla.value as usize).map(value).collect()
    };
    (weights, y)
}

impl Card for MlaAbsorbed {
    fn compute(&self, mut io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let (mla, heads, keys) = (&self.mla, self.mla.heads as usize, io.latent.rows());
        let tokens = if io.y.is_empty() { 0 } else { io.visible.cols() };
        for t in 0..tokens {
            let seen = seen(&io.visible, t, keys);
            for head in 0..heads {
                let r = t * heads + head;
                let (weights, y) = attend(mla, &io, head, &io.q.row(r), seen);
                io.y.set_row(r, &y);
                if io.y.wants_magnitude() {
                    let sizes = magnitudes(mla, &io.uv, &io.latent, head, &weights);
                    io.y.set_magnitude(r, &sizes);
                }
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        tolerance()
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (mla, extents) = sizes(choices);
        (MlaAbsorbed { mla }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        edges().into_iter().map(|(mla, extents)| (MlaAbsorbed { mla }, extents)).collect()
    }
}
