//! Card of [`RouteHash`].

use super::{choice, experts::tokens};
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, Real, Result, RouteHash, RouteHashIo};

fn case(vocab: u64, experts: u64, top_k: u64, n: u64) -> (RouteHash, Extents) {
    (RouteHash { vocab, experts, top_k, scale: Real::new(1.5) }, tokens(n))
}

impl Card for RouteHash {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RouteHashIo { logits, id, table, mut expert, mut weight } = io;
        for t in 0..logits.rows() {
            let row = usize::try_from(id.int(0, t)).ok().filter(|r| (*r as u64) < self.vocab);
            let listed = row.map_or(vec![-1; self.top_k as usize], |r| table.ints(r));
            let known = |e: &i32| u64::try_from(*e).is_ok_and(|e| e < self.experts);
            let score = |e: &i32| choice::score(logits.at(t, *e as usize));
            let taken: Vec<f32> = listed.iter().filter(|e| known(e)).map(score).collect();
            let mut found = choice::weights(&taken, self.scale.value()).into_iter();
            let mut next = |e: &i32| if known(e) { found.next().unwrap_or(0.0) } else { 0.0 };
            let weights: Vec<f64> = listed.iter().map(&mut next).collect();
            let experts: Vec<i32> = listed.iter().map(|e| if known(e) { *e } else { -1 }).collect();
            expert.set_ints(t, &experts);
            weight.set_row(t, &weights);
            weight.set_magnitude(t, &weights.iter().map(|w| w.abs()).collect::<Vec<_>>());
        }
        Ok(())
    }

    fn tolerance(&self, operand: &str) -> Tolerance {
        choice::tolerance(operand, self.top_k)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (vocab, experts) = (choices.between(1, 40), choices.between(1, 16));
        let top_k = choices.between(1, experts.min(6));
        case(vocab, experts, top_k, choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1, 1), case(640, 16, 3, 0), case(640, 16, 3, 9)]
    }
}
