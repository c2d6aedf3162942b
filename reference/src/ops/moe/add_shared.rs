//! Card of [`AddShared`].

use super::experts::tokens;
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{AddShared, AddSharedIo, Extents, Result};

fn case(hidden: u64, rows: u64) -> (AddShared, Extents) {
    (AddShared { hidden }, tokens(rows))
}

impl Card for AddShared {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let AddSharedIo { routed, shared, mut y } = io;
        for t in 0..y.rows() {
            let (a, b) = (routed.row(t), shared.row(t));
            let pairs = || a.iter().zip(&*b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
            y.set_row(t, &pairs().map(|(a, b)| a + b).collect::<Vec<_>>());
            if y.wants_magnitude() {
                y.set_magnitude(t, &pairs().map(|(a, b)| a.abs() + b.abs()).collect::<Vec<_>>());
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
        vec![case(1, 1), case(64, 0), case(5120, 2), case(257, 65)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 128, 8192].iter().map(|t| case(5120, *t)).collect()
    }
}
