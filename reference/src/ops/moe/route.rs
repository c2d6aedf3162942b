//! Card of [`Route`].

use super::{choice, experts::tokens};
use crate::{Card, Choices, Compute, Context, Host, Tolerance, order, threads};
use crate::{blocked_row, scalar_row};
use tandem_hal::{Extents, Real, Result, Route, RouteIo, Row};

/// Experts and weights, before rounding, of one row of logits under `bias`.
fn route(d: &Route, logits: &[f32], bias: &[f32]) -> (Vec<i32>, Vec<f64>) {
    let scores: Vec<f32> = logits.iter().map(|l| choice::score(*l)).collect();
    let keys: Vec<f32> = scores.iter().zip(bias).map(|(s, b)| s + b).collect();
    let taken = order::best(&keys, d.top_k as usize);
    let taken_scores: Vec<f32> = taken.iter().map(|e| scores[*e]).collect();
    let weights = choice::weights(&taken_scores, d.scale.value());
    (taken.iter().map(|e| *e as i32).collect(), weights)
}

/// Routes all rows, each for so many operations.
fn run(d: &Route, io: Host<'_, Route>, operations: usize) {
    let RouteIo { logits, bias, bias_picture, picture, mut expert, mut weight } = io;
    if expert.is_empty() {
        return;
    }
    let own = bias.row(0);
    let shown = if d.pictures { bias_picture.row(0) } else { own.clone() };
    let one = |t: usize| {
        let is_picture = d.pictures && picture.int(0, t) != 0;
        route(d, &logits.row(t), if is_picture { &shown } else { &own })
    };
    let rows = threads::collect(logits.rows(), operations, one);
    for (t, (experts, weights)) in rows.iter().enumerate() {
        expert.set_ints(t, experts);
        weight.set_row(t, weights);
        if weight.wants_magnitude() {
            weight.set_magnitude(t, &weights.iter().map(|w| w.abs()).collect::<Vec<_>>());
        }
    }
}

fn case(experts: u64, top_k: u64, pictures: bool, rows: u64) -> (Route, Extents) {
    (Route { experts, top_k, scale: Real::new(1.5), pictures }, tokens(rows))
}

impl Card for Route {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(self, io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    // A score takes about fifty nanoseconds.
                    run(d, io, 50 * d.experts as usize);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, operand: &str) -> Tolerance {
        choice::tolerance(operand, self.top_k)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let experts = choices.pick(&[1, 2, 4, 7, 16, 33, 64, 128, 384]);
        let top_k = choices.between(1, experts.min(8));
        case(experts, top_k, choices.flag(), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![
            case(1, 1, false, 1),
            case(3, 2, false, 1),
            case(4, 4, true, 5),
            case(8, 2, false, 64),
            case(384, 6, true, 0),
            case(384, 6, true, 33),
            case(128, 3, false, 5),
        ]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 8, 64, 512, 4096].iter().map(|t| case(384, 6, true, *t)).collect()
    }
}
