//! Card of [`MhcMean`].

use super::collapse::{collapse, gamma, magnitudes};
use super::streams::side_by_side;
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, MhcMean, MhcMeanIo, Result, Sym};

fn case(streams: u64, width: u64, tokens: u64) -> (MhcMean, Extents) {
    (MhcMean { streams, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MhcMean {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MhcMeanIo { streams, mut y } = io;
        let (count, ones) = (self.streams as usize, vec![1.0; self.streams as usize]);
        let mut values = vec![0.0; y.cols()];
        let share = |sums: &mut [f64]| sums.iter_mut().for_each(|v| *v /= count as f64);
        for t in 0..y.rows() {
            let h = side_by_side(&streams, count, t);
            collapse(&h, &ones, &mut values);
            share(&mut values);
            y.set_row(t, &values);
            if y.wants_magnitude() {
                let mut terms = magnitudes(&h, &ones, values.len());
                share(&mut terms);
                y.set_magnitude(t, &terms);
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: gamma(self.streams) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.between(1, 6), choices.between(1, 300), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(4, 32, 0), case(3, 100, 3)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(4, 5120, tokens)).to_vec()
    }
}
