//! Which rotation a layer uses: one table for layers that compress, one for all others.

use tandem_hal::{Real, Rotate, Yarn};

use super::config::Config;

impl Config {
    /// The rotation of one head of `head_dim` in a layer with this compression ratio; everything in
    /// a layer rotates by the same table.
    pub fn rotation(&self, ratio: u64, head_dim: u64) -> Rotate {
        let rope = &self.rope;
        let real = |x: f64| Real::new(x as f32);
        let yarn = Yarn {
            factor: real(rope.factor),
            beta_fast: real(rope.beta_fast),
            beta_slow: real(rope.beta_slow),
            original: rope.original_tokens as u64,
        };
        Rotate {
            heads: 1,
            head_dim,
            rotary: self.attention.rope_dim as u64,
            base: real(if ratio > 0 { rope.compressed_base } else { rope.base }),
            yarn: (ratio > 0).then_some(yarn),
            inverse: false,
            group: 1,
        }
    }
}
