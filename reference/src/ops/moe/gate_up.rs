//! Card of [`GateUp`].

use super::experts::{self, Project, Slots};
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, ops::gemm::linear, scalar_row,
};
use tandem_hal::{Extents, GateUp, GateUpIo, Result, Row};

/// Gate and up products of each slot side by side, `[tokens, top_k 2 inter]`.
fn side_by_side(gate: &[f64], up: &[f64], inter: usize) -> Vec<f64> {
    let pairs = gate.chunks_exact(inter).zip(up.chunks_exact(inter));
    pairs.flat_map(|(gate, up)| gate.iter().chain(up)).copied().collect()
}

fn run(d: &GateUp, io: Host<'_, GateUp>, project: Project) {
    let GateUpIo { x, expert, w1, w3, mut y } = io;
    if y.is_empty() {
        return;
    }
    let (top_k, inter) = (d.experts.top_k as usize, d.experts.inter as usize);
    let slots = Slots::of(&d.experts, &expert);
    let rows: Vec<_> = (0..x.rows()).map(|t| x.row(t)).collect();
    let input = |slot: usize| &*rows[slot / top_k];
    let both = |project: Project| {
        let (gate, up) = (project(&slots, &w1, inter, &input), project(&slots, &w3, inter, &input));
        side_by_side(&gate, &up, inter)
    };
    let width = y.cols();
    for (t, values) in both(project).chunks_exact(width).enumerate() {
        y.set_row(t, values);
    }
    if y.wants_magnitude() {
        for (t, magnitudes) in both(experts::magnitudes).chunks_exact(width).enumerate() {
            y.set_magnitude(t, magnitudes);
        }
    }
}

impl Card for GateUp {
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

    fn tolerance(&self, _operand: &str) -> Tolerance {
        linear::tolerance(self.experts.hidden)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (experts, extents) = experts::draw(choices);
        (GateUp { experts }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        experts::edges().into_iter().map(|(experts, at)| (GateUp { experts }, at)).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        experts::bench_shapes().into_iter().map(|(experts, at)| (GateUp { experts }, at)).collect()
    }
}
