//! Card of [`F32Linear`].

use super::linear;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
use tandem_hal::{Elem, Extents, F32Linear, F32LinearIo, Result, Row, Sym};

fn case(n: u64, k: u64, stored: (Elem, Elem), tokens: u64) -> (F32Linear, Extents) {
    let (x, weight) = stored;
    (F32Linear { n, k, x, weight }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for F32Linear {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let F32LinearIo { x, weight, mut y } = io;
        linear::scalar(&x, &weight, None, 1, &mut y);
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|_, io, _| {
                    let F32LinearIo { x, weight, mut y } = io;
                    linear::blocked(&x, &weight, None, 1, &mut y);
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        linear::tolerance(self.k)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let n = choices.pick(&[1, 16, 31, 32, 33, 48, 64, 96, 130]);
        let k = choices.pick(&[1, 8, 31, 32, 48, 64, 100, 256]);
        let x = choices.pick(&[Elem::Bf16, Elem::F32]);
        let weight = choices.pick(&[Elem::Bf16, Elem::F32]);
        case(n, k, (x, weight), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let stored = (Elem::Bf16, Elem::Bf16);
        let awkward = [16, 32, 48, 288, 512, 768];
        let mut cases: Vec<_> = awkward
            .iter()
            .flat_map(|n| [1, 7, 65].map(|tokens| case(*n, 64, stored, tokens)))
            .collect();
        // So many columns that tuned rows share a sum out, with a ragged end; and more tokens than a tile of theirs.
        cases.extend([case(70, 1096, stored, 9), case(65, 520, stored, 34)]);
        let f32s = (Elem::F32, Elem::F32);
        cases.extend([case(1, 1, f32s, 1), case(33, 32, f32s, 0), case(40, 588, f32s, 3)]);
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        // The router gate and the ratio-2 compressor, its halves apart and together; the head, whole
        // and shared by 4 and 8 ranks, runs on few rows only.
        let (bf16, tokens) = ((Elem::Bf16, Elem::Bf16), [1, 8, 64, 512, 4096, 8192]);
        let mut cases: Vec<_> = [(384, 5120), (512, 5120), (1024, 5120)]
            .iter()
            .flat_map(|&(n, k)| tokens.map(|t| case(n, k, bf16, t)))
            .collect();
        let head = [129_280, 32_320, 16_160];
        cases.extend(head.iter().flat_map(|n| [1, 8, 64].map(|t| case(*n, 5120, bf16, t))));
        cases
    }
}
