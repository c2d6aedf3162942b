//! Card of [`AllReduce`].

use super::exchange::exchange;
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{AllReduce, AllReduceIo, Extents, Operator, Result, Sym};

fn case(ranks: u64, width: u64, tokens: u64) -> (AllReduce, Extents) {
    (AllReduce { width, ranks }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for AllReduce {
    fn compute(&self, io: Host<'_, Self>, context: &Context<'_>) -> Result<()> {
        let AllReduceIo { x, mut y } = io;
        let all = exchange(Self::ID, self.ranks, &x, context)?;
        let width = self.width as usize;
        for t in 0..y.rows() {
            let each = |f: fn(f64) -> f64| -> Vec<f64> {
                let at = |n: usize| all.iter().map(move |x| f(f64::from(x[t * width + n]))).sum();
                (0..width).map(at).collect()
            };
            y.set_row(t, &each(|v| v));
            if y.wants_magnitude() {
                y.set_magnitude(t, &each(f64::abs));
            }
        }
        Ok(())
    }

    /// An addition in fp32 per rank, half an ulp each.
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: self.ranks as f64 * f64::from(f32::EPSILON) / 2.0 }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let ranks = choices.between(1, 4);
        case(ranks, choices.pick(&[1, 7, 32, 100]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(1, 257, 5), case(2, 64, 0), case(2, 64, 3), case(4, 33, 5)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shapes = [2, 4, 8].iter().flat_map(|ranks| [1, 128, 8192].map(|t| (*ranks, t)));
        let one = |(ranks, t)| (AllReduce { width: 5120, ranks }, Extents::of(&[(Sym::Tokens, t)]));
        shapes.map(one).collect()
    }
}
