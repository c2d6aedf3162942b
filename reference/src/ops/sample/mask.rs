//! Card of [`MaskLogits`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Extents, MaskLogits, MaskLogitsIo, Result, Sym};

fn case(vocab: u64, tokens: u64) -> (MaskLogits, Extents) {
    (MaskLogits { vocab }, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MaskLogits {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MaskLogitsIo { allowed, mut logits } = io;
        for (t, bytes) in logits.split_rows() {
            for (x, logit) in bytes.chunks_exact_mut(4).enumerate() {
                if allowed.unsigned(t, x / 32) >> (x % 32) & 1 == 0 {
                    logit.copy_from_slice(&f32::NEG_INFINITY.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        case(choices.pick(&[1, 31, 32, 33, 64, 100, 640]), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1), case(33, 2), case(64, 0), case(2048, 6)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 32].iter().map(|t| case(129_280, *t)).collect()
    }
}
