//! Card of [`Draw`].

use crate::{Card, Choices, Compute, Context, Host, Tolerance, threads};
use crate::{blocked_row, scalar_row};
use tandem_hal::{Draw, DrawIo, Extents, Result, Row, Sym};

/// The smallest id whose running sum exceeds `uniform` times the mass; the last id with positive
/// mass when rounding leaves none; -1 when the mass is not positive and finite.
pub(crate) fn walk(law: impl Iterator<Item = f64> + Clone, uniform: f32) -> i32 {
    let mass: f64 = law.clone().sum();
    if !(mass > 0.0 && mass.is_finite()) {
        return -1;
    }
    let threshold = f64::from(uniform) * mass;
    let (mut sum, mut last) = (0.0, -1);
    for (id, p) in law.enumerate() {
        sum += p;
        if p > 0.0 {
            last = id as i32;
            if sum > threshold {
                break;
            }
        }
    }
    last
}

/// Draws for all rows, each for so many operations.
fn run(io: Host<'_, Draw>, operations: usize) {
    let DrawIo { p, uniform, mut token } = io;
    let one = |t: usize| walk(p.row(t).iter().map(|p| f64::from(*p)), uniform.at(0, t));
    token.set_ints(0, &threads::collect(p.rows(), operations, one));
}

fn case(vocab: u64, tokens: u64) -> (Draw, Extents) {
    (Draw { vocab }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for Draw {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(io, 0);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    run(io, 2 * d.vocab as usize);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.pick(&[1, 2, 3, 31, 32, 33, 100, 640, 1025]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1), case(3, 1000), case(10, 0), case(2048, 6), case(4099, 33)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128].iter().map(|t| case(129_280, *t)).collect()
    }
}
