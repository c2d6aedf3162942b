//! Card of [`CombineScaled`].

use super::experts::tokens;
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{CombineScaled, CombineScaledIo, Extents, Real, Result, ScalePlacement};

/// One output: `terms` are expert outputs with their weights, `f` the factor, `s` the shared one.
fn place(placement: ScalePlacement, f: f64, terms: &[(f64, f64)], s: f64) -> f64 {
    let sum = |factor: f64| terms.iter().map(|(x, w)| factor * w * x).sum::<f64>();
    match placement {
        ScalePlacement::Weights => sum(f) + s,
        ScalePlacement::Sum => f * sum(1.0) + s,
        ScalePlacement::Kernel => f * (sum(1.0) + 1.0 / f * s),
    }
}

fn case(
    top_k: u64,
    hidden: u64,
    f: f32,
    placement: ScalePlacement,
    n: u64,
) -> (CombineScaled, Extents) {
    (CombineScaled { top_k, hidden, factor: Real::new(f), placement }, tokens(n))
}

impl Card for CombineScaled {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let CombineScaledIo { x, weight, shared, mut y } = io;
        let (top_k, f) = (self.top_k as usize, f64::from(self.factor.value()));
        for t in 0..y.rows() {
            let terms = |n: usize| -> Vec<(f64, f64)> {
                let term = |i| (f64::from(x.at(t * top_k + i, n)), f64::from(weight.at(t, i)));
                (0..top_k).map(term).collect()
            };
            let each = |sign: fn(f64) -> f64| -> Vec<f64> {
                let one = |n| {
                    let terms: Vec<_> =
                        terms(n).iter().map(|(x, w)| (sign(*x), sign(*w))).collect();
                    place(self.placement, f, &terms, sign(f64::from(shared.at(t, n))))
                };
                (0..self.hidden as usize).map(one).collect()
            };
            y.set_row(t, &each(|v| v));
            if y.wants_magnitude() {
                y.set_magnitude(t, &each(f64::abs));
            }
        }
        Ok(())
    }

    /// `top_k` additions and three products in fp32.
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: (self.top_k as f64 / 2.0 + 3.0) * f64::from(f32::EPSILON) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (top_k, hidden) = (choices.between(1, 8), choices.between(1, 40));
        let factor = choices.pick(&[1.0, 1.5, 2.5, 16.0]);
        case(top_k, hidden, factor, choices.pick(ScalePlacement::ALL), choices.between(0, 5))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let each = |p: &ScalePlacement| [case(2, 1, 1.5, *p, 1), case(8, 33, 2.5, *p, 0)];
        ScalePlacement::ALL.iter().flat_map(each).collect()
    }
}
