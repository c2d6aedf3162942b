//! Card of [`GatedSilu`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::num::bf16;
use tandem_hal::{Extents, GatedSilu, GatedSiluIo, Result, Sym};

/// Half an ulp of fp32. The product of two bf16 values is exact in it.
const GAMMA: f64 = f32::EPSILON as f64 / 2.0;

/// `silu(gate)` before rounding.
fn silu(gate: f32) -> f64 {
    let g = f64::from(gate);
    g * (1.0 / (1.0 + libm::exp(-g)))
}

/// The product before rounding.
pub(super) fn unit(gate: f32, up: f32) -> f64 {
    f64::from(bf16::round_f64(silu(gate))) * f64::from(up)
}

/// Fp32 loses a few ulps of the unit, `|g|` half-ulps in the argument of the exponential and what
/// is below the smallest normal number: enough, near a midpoint, to round to the other neighbour.
fn magnitude(gate: f32, up: f32) -> f64 {
    let (exact, g, u) = (silu(gate), f64::from(gate.abs()), f64::from(up.abs()));
    let error = exact.abs() * (g + 8.0) * GAMMA + g * f64::from(f32::MIN_POSITIVE);
    let round = |x: f64| f64::from(bf16::round_f64(x));
    let moved = (round(exact + error) - round(exact - error)).abs();
    unit(gate, up).abs() + moved * u / GAMMA
}

fn case(inter: u64, tokens: u64) -> (GatedSilu, Extents) {
    (GatedSilu { inter }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for GatedSilu {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let GatedSiluIo { x, mut y } = io;
        let inter = self.inter as usize;
        for t in 0..y.rows() {
            let row = x.row(t);
            let each = |f: fn(f32, f32) -> f64| -> Vec<f64> {
                row[..inter].iter().zip(&row[inter..]).map(|(g, u)| f(*g, *u)).collect()
            };
            y.set_row(t, &each(unit));
            if y.wants_magnitude() {
                y.set_magnitude(t, &each(magnitude));
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: GAMMA }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.pick(&[1, 7, 32, 100, 256]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1), case(64, 0), case(257, 35)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1610, 9198].iter().map(|t| case(2816, *t)).collect()
    }
}
