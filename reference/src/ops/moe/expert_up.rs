//! Card of [`ExpertUp`].

use super::experts::{self, Project, Slots};
use super::swiglu;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, threads};
use tandem_hal::num::bf16;
use tandem_hal::{ExpertUp, ExpertUpIo, Experts, Extents, Real, Result, Row};

fn run(d: &ExpertUp, io: Host<'_, ExpertUp>, project: Project) {
    let ExpertUpIo { x, expert, weight, w1, w3, mut y } = io;
    if y.is_empty() {
        return;
    }
    let (top_k, inter) = (d.experts.top_k as usize, d.experts.inter as usize);
    let slots = Slots::of(&d.experts, &expert);
    let rows: Vec<_> = (0..x.rows()).map(|t| x.row(t)).collect();
    let input = |slot: usize| &*rows[slot / top_k];
    let (gate, up) = (project(&slots, &w1, inter, &input), project(&slots, &w3, inter, &input));
    let limit = d.limit.value();
    let units = |t: usize| -> Vec<f32> {
        let unit = |n: usize| {
            let at = t * top_k * inter + n;
            let (g, u) = (bf16::round_f64(gate[at]), bf16::round_f64(up[at]));
            bf16::round_f64(swiglu::unit(g, u, limit, f64::from(weight.at(t, n / inter))))
        };
        (0..top_k * inter).map(unit).collect()
    };
    let operations = swiglu::OPERATIONS * top_k * inter;
    for (t, units) in threads::collect(rows.len(), operations, units).iter().enumerate() {
        y.set_scaled_row(t, units);
    }
}

fn case(experts: Experts, limit: f32, at: Extents) -> (ExpertUp, Extents) {
    (ExpertUp { experts, limit: Real::new(limit) }, at)
}

impl Card for ExpertUp {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        run(self, io, experts::scalar);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    run(d, io, experts::blocked);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    /// An fp32 sum near a midpoint may round to the neighbouring bf16, and that to the neighbouring
    /// code: one unit of the coarser scale where the scales differ.
    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Ulp { ulps: 1, share: 0.0 }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let limit = choices.pick(&[10.0, 0.0, 0.5]);
        let (experts, extents) = experts::draw(choices);
        case(experts, limit, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        experts::edges().into_iter().map(|(experts, at)| case(experts, 10.0, at)).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        experts::bench_shapes().into_iter().map(|(experts, at)| case(experts, 10.0, at)).collect()
    }
}
