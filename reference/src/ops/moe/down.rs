//! Card of [`Down`].

use super::experts::{self, Project, Slots};
use crate::{
    Card, Choices, Compute, Context, Host, Tensor, Tolerance, blocked_row, ops::gemm::linear,
    scalar_row,
};
use tandem_hal::{Down, DownIo, Experts, Extents, Result, Row};

/// `[slots, hidden]` products of the down projection, before rounding.
pub(super) fn products(
    experts: &Experts,
    slots: &Slots,
    x: &Tensor<'_>,
    w2: &Tensor<'_>,
    project: Project,
) -> Vec<f64> {
    let (top_k, inter) = (experts.top_k as usize, experts.inter as usize);
    let rows: Vec<_> = (0..x.rows()).map(|t| x.row(t)).collect();
    let input = |slot: usize| &rows[slot / top_k][slot % top_k * inter..][..inter];
    project(slots, w2, experts.hidden as usize, &input)
}

fn run(d: &Down, io: Host<'_, Down>, project: Project) {
    let DownIo { x, expert, w2, mut y } = io;
    if y.is_empty() {
        return;
    }
    let slots = Slots::of(&d.experts, &expert);
    let values = products(&d.experts, &slots, &x, &w2, project);
    let width = y.cols();
    for (t, values) in values.chunks_exact(width).enumerate() {
        y.set_row(t, values);
    }
    if y.wants_magnitude() {
        let magnitudes = products(&d.experts, &slots, &x, &w2, experts::magnitudes);
        for (t, magnitudes) in magnitudes.chunks_exact(width).enumerate() {
            y.set_magnitude(t, magnitudes);
        }
    }
}

impl Card for Down {
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
        linear::tolerance(self.experts.inter)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (experts, extents) = experts::draw(choices);
        (Down { experts }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        experts::edges().into_iter().map(|(experts, at)| (Down { experts }, at)).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        experts::bench_shapes().into_iter().map(|(experts, at)| (Down { experts }, at)).collect()
    }
}
