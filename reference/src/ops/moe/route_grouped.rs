//! Card of [`RouteGrouped`].

use super::{choice, experts::tokens};
use crate::{Card, Choices, Context, Host, Tolerance, order};
use tandem_hal::{Extents, Real, Result, RouteGrouped, RouteGroupedIo};

/// The groups that stay, by the sum of their two largest keys.
fn groups(d: &RouteGrouped, keys: &[f32]) -> Vec<usize> {
    let size = (d.experts / d.groups) as usize;
    let sum = |keys: &[f32]| order::best(keys, 2).iter().map(|e| keys[*e]).sum();
    let sums: Vec<f32> = keys.chunks_exact(size).map(sum).collect();
    order::best(&sums, d.groups_taken as usize)
}

/// Places of the `top_k` largest keys within the groups that stay.
fn taken(d: &RouteGrouped, keys: &[f32]) -> Vec<usize> {
    let size = (d.experts / d.groups) as usize;
    let mut groups = groups(d, keys);
    groups.sort_unstable();
    // Ascending experts, so that ties still go to the lower one.
    let open: Vec<usize> = groups.iter().flat_map(|g| g * size..(g + 1) * size).collect();
    let open_keys: Vec<f32> = open.iter().map(|e| keys[*e]).collect();
    order::best(&open_keys, d.top_k as usize).iter().map(|i| open[*i]).collect()
}

fn case(
    experts: u64,
    groups: u64,
    groups_taken: u64,
    top_k: u64,
    n: u64,
) -> (RouteGrouped, Extents) {
    let scale = Real::new(2.5);
    (RouteGrouped { experts, groups, groups_taken, top_k, scale }, tokens(n))
}

impl Card for RouteGrouped {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RouteGroupedIo { logits, bias, mut expert, mut weight } = io;
        let bias = bias.row(0);
        for t in 0..logits.rows() {
            let sigmoid = |l: &f32| (1.0 / (1.0 + libm::exp(-f64::from(*l)))) as f32;
            let scores: Vec<f32> = logits.row(t).iter().map(sigmoid).collect();
            let keys: Vec<f32> = scores.iter().zip(&*bias).map(|(s, b)| s + b).collect();
            let taken = taken(self, &keys);
            let taken_scores: Vec<f32> = taken.iter().map(|e| scores[*e]).collect();
            let weights = choice::weights(&taken_scores, self.scale.value());
            expert.set_ints(t, &taken.iter().map(|e| *e as i32).collect::<Vec<_>>());
            weight.set_row(t, &weights);
            weight.set_magnitude(t, &weights.iter().map(|w| w.abs()).collect::<Vec<_>>());
        }
        Ok(())
    }

    fn tolerance(&self, operand: &str) -> Tolerance {
        choice::tolerance(operand, self.top_k)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (groups, size) = (choices.between(1, 8), choices.between(2, 8));
        let groups_taken = choices.between(1, groups);
        let top_k = choices.between(1, (groups_taken * size).min(8));
        case(groups * size, groups, groups_taken, top_k, choices.between(0, 5))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(2, 1, 1, 2, 1), case(256, 8, 4, 8, 0), case(256, 8, 4, 8, 7)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 128].iter().map(|t| case(256, 8, 4, 8, *t)).collect()
    }
}
