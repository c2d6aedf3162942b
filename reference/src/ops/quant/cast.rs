//! Card of [`Cast`].

use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, simd, threads,
};
use tandem_hal::{Cast, CastIo, Enc, Extents, Result, Row, Sym};

fn case(to: Enc, width: u64, tokens: u64) -> (Cast, Extents) {
    (Cast { to, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

/// The encodings that have a scale rule, and their blocks.
const RULES: [(Enc, u64); 5] =
    [(Enc::Q8, 32), (Enc::Q8_FNUZ, 32), (Enc::MXFP4, 32), (Enc::NVFP4, 16), (Enc::FP8_ROW128, 128)];

impl Card for Cast {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let CastIo { x, mut y } = io;
        for r in 0..x.rows() {
            y.set_scaled_row(r, &x.row(r));
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let CastIo { x, mut y } = io;
                    let rows = y.split_scaled_rows().into_iter().enumerate().collect();
                    threads::each(rows, 4 * d.width as usize, |(r, mut to)| {
                        simd::vectorised(|| to.set(&x.row(r)));
                    });
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
        let (to, block) = choices.pick(&RULES);
        case(to, block * choices.between(1, 9), choices.between(0, 17))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let mut cases: Vec<_> = RULES
            .iter()
            .flat_map(|&(to, block)| {
                [(0, 2), (1, 1), (1, 3), (65, 2)].map(|(t, n)| (to, n * block, t))
            })
            .map(|(to, width, tokens)| case(to, width, tokens))
            .collect();
        // The encoding's whole blocks of a wide row: more of them than a warp has lanes.
        cases.push(case(Enc::Q8, 32 * 33, 3));
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let rows = [(Enc::Q8, 5120), (Enc::Q8, 8192), (Enc::Q8, 2304), (Enc::MXFP4, 4096)];
        let tokens = [1, 6, 32, 128, 8192];
        rows.iter().flat_map(|&(to, width)| tokens.map(|t| case(to, width, t))).collect()
    }
}
