//! Card of [`Confidence`].

use crate::ops::gemm::linear;
use crate::{Card, Choices, Context, Host, Tolerance, sum};
use tandem_hal::{Confidence, ConfidenceIo, Extents, Result, Sym};

fn case(width: u64, vocab: u64, rank: u64, tokens: u64) -> (Confidence, Extents) {
    (Confidence { width, vocab, rank }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Confidence {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let ConfidenceIo { hidden, previous, embed, weight, mut y } = io;
        let weight = weight.row(0);
        let input = |t: usize| -> Vec<f32> {
            let mut row = hidden.row(t).into_owned();
            let token = usize::try_from(previous.int(0, t)).ok();
            // Without a token the sum ends after the state: zeros would be multiplied.
            if let Some(token) = token.filter(|x| (*x as u64) < self.vocab) {
                row.extend(embed.row(token).iter());
            }
            row
        };
        let rows: Vec<_> = (0..hidden.rows()).map(input).collect();
        y.set_row(0, &rows.iter().map(|x| sum::dot(x, &weight)).collect::<Vec<_>>());
        if y.wants_magnitude() {
            let each = rows.iter().map(|x| sum::dot_magnitude(x, &weight));
            y.set_magnitude(0, &each.collect::<Vec<_>>());
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        linear::tolerance(self.width + self.rank)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (width, rank) = (choices.pick(&[1, 3, 32, 33, 256]), choices.pick(&[1, 2, 8, 64]));
        case(width, choices.pick(&[1, 4, 33]), rank, choices.between(0, 6))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(3, 4, 2, 2), case(1, 1, 1, 1), case(256, 640, 64, 5), case(32, 4, 8, 0)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 5, 160].iter().map(|t| case(5120, 129_280, 256, *t)).collect()
    }
}
