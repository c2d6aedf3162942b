//! Card of [`ExpertDown`].

use super::experts::{self, Project, Slots};
use super::{combine, down};
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, ops::gemm::linear, scalar_row,
};
use tandem_hal::num::bf16;
use tandem_hal::{ExpertDown, ExpertDownIo, Extents, Result, Row};

fn run(d: &ExpertDown, io: Host<'_, ExpertDown>, project: Project) {
    let ExpertDownIo { x, expert, w2, mut y } = io;
    if y.is_empty() {
        return;
    }
    let slots = Slots::of(&d.experts, &expert);
    let (top_k, hidden) = (d.experts.top_k as usize, d.experts.hidden as usize);
    let mut each = down::products(&d.experts, &slots, &x, &w2, project);
    // What `Down` writes and `Combine` reads.
    each.iter_mut().for_each(|v| *v = f64::from(bf16::round_f64(*v)));
    for t in 0..y.rows() {
        let taken = slots.ascending(t, top_k);
        y.set_row(t, &combine::sum(&taken, hidden, |slot, n| each[slot * hidden + n]));
    }
    if y.wants_magnitude() {
        let dots = down::products(&d.experts, &slots, &x, &w2, experts::magnitudes);
        let gamma = linear::gamma(d.experts.inter);
        // A term near a midpoint may round to the other neighbour, one ulp of bf16 away.
        let term = 2f64.powi(-7) + combine::gamma(d.experts.top_k);
        for t in 0..y.rows() {
            let taken = slots.ascending(t, top_k);
            let of = |at: usize| dots[at] + each[at].abs() * term / gamma;
            y.set_magnitude(t, &combine::sum(&taken, hidden, |slot, n| of(slot * hidden + n)));
        }
    }
}

impl Card for ExpertDown {
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
        (ExpertDown { experts }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        experts::edges().into_iter().map(|(experts, at)| (ExpertDown { experts }, at)).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shapes = experts::bench_shapes().into_iter();
        shapes.map(|(experts, at)| (ExpertDown { experts }, at)).collect()
    }
}
