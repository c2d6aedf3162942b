//! Card of [`Gelu`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, Gelu, GeluIo, Result, Sym};

/// `x (1 + erf(x / sqrt 2)) / 2`; the complement keeps its bits where the sum would cancel.
pub(super) fn gelu(x: f32) -> f64 {
    if x == f32::NEG_INFINITY {
        return -0.0;
    }
    let x = f64::from(x);
    0.5 * x * libm::erfc(-x / std::f64::consts::SQRT_2)
}

fn case(width: u64, tokens: u64) -> (Gelu, Extents) {
    (Gelu { width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Gelu {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let GeluIo { x, mut y } = io;
        for t in 0..y.rows() {
            let row = x.row(t);
            y.set_row(t, &row.iter().map(|x| gelu(*x)).collect::<Vec<_>>());
            if y.wants_magnitude() {
                let each = row.iter().map(|x| f64::from(x.abs()));
                y.set_magnitude(t, &each.collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    /// An fp32 error function is two ulps off near minus one, where the sum with one cancels.
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: 4.0 * f64::from(f32::EPSILON) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.pick(&[1, 7, 32, 100, 256]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1), case(64, 0), case(257, 35)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [192, 1022].iter().map(|t| case(5120, *t)).collect()
    }
}
