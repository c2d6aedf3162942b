//! Card of [`Decode`].

use crate::{Card, Choices, Context, Host, Tolerance, tensor::element};
use tandem_hal::{Decode, DecodeIo, Elem, Enc, Extents, Result, Sym};

fn case(from: Enc, width: u64, tokens: u64) -> (Decode, Extents) {
    (Decode { from, width }, Extents::of(&[(Sym::Tokens, tokens)]))
}

/// What has scales of one row each, and their blocks.
const ENCODINGS: [(Enc, u64); 5] =
    [(Enc::Q8, 32), (Enc::Q8_FNUZ, 32), (Enc::MXFP4, 32), (Enc::NVFP4, 16), (Enc::FP8_ROW128, 128)];

impl Card for Decode {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let DecodeIo { x, mut y } = io;
        let Enc::Scaled { code, scale, cols, .. } = self.from else {
            panic!("a checked descriptor has scales")
        };
        let (width, block) = (x.cols(), cols as usize);
        for r in 0..x.rows() {
            // In f64 the product is exact for every code and scale.
            let value = |c: usize| {
                let code = element(code, x.codes, r * x.stride + c);
                let scale = element(scale, x.scales, r * width.div_ceil(block) + c / block);
                f64::from(code) * f64::from(scale)
            };
            let values: Vec<f64> = (0..width).map(value).collect();
            y.set_row(r, &values);
            if y.wants_magnitude() {
                y.set_magnitude(r, &values.iter().map(|v| v.abs()).collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        match self.from {
            // The product with an f32 scale may round to f32 before it rounds to bf16.
            Enc::Scaled { scale: Elem::F32, .. } => {
                Tolerance::Bound { gamma: f64::from(f32::EPSILON) / 2.0 }
            }
            _ => Tolerance::Exact,
        }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (from, block) = choices.pick(&ENCODINGS);
        case(from, block * choices.between(1, 9), choices.between(0, 17))
    }

    fn edges() -> Vec<(Self, Extents)> {
        ENCODINGS
            .iter()
            .flat_map(|&(from, block)| {
                [case(from, block, 0), case(from, block, 1), case(from, 5 * block, 65)]
            })
            .collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        vec![case(Enc::Q8, 512, 8192), case(Enc::NVFP4, 512, 8192), case(Enc::MXFP4, 128, 8192)]
    }
}
