//! Card of [`AddRows`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{AddRows, AddRowsIo, Extents, Result, Sym};

fn case(width: u64, tokens: u64) -> (AddRows, Extents) {
    (AddRows { width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for AddRows {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let AddRowsIo { y, mut x } = io;
        for t in 0..y.rows() {
            let (old, added) = (x.read().row(t).into_owned(), y.row(t));
            let each = |f: fn(f64) -> f64| -> Vec<f64> {
                old.iter().zip(&*added).map(|(a, b)| f((*a).into()) + f((*b).into())).collect()
            };
            x.set_row(t, &each(|v| v));
            if x.wants_magnitude() {
                x.set_magnitude(t, &each(f64::abs));
            }
        }
        Ok(())
    }

    /// One addition in fp32, half an ulp.
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: f64::from(f32::EPSILON) / 2.0 }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.pick(&[1, 7, 32, 100, 256]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1), case(64, 0), case(1024, 2), case(257, 35)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1610, 9198].iter().map(|t| case(1024, *t)).collect()
    }
}
