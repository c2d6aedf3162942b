//! Card of [`Requant`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::num::{E4m3Fn, E4m3Fnuz, Ue8m0};
use tandem_hal::{Extents, Requant, RequantIo, Result};

impl Card for Requant {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RequantIo { x, y } = io;
        let (k, tile) = (self.k as usize, self.tile as usize);
        for r in 0..x.rows() {
            let from = &x.codes[r * x.stride..][..k];
            for (to, code) in y.codes[r * y.stride..][..k].iter_mut().zip(from) {
                *to = E4m3Fnuz::half_of(E4m3Fn(*code)).0;
            }
        }
        let tiles = x.rows().div_ceil(tile) * k.div_ceil(tile);
        for (to, scale) in y.scales[..tiles].iter_mut().zip(x.scales) {
            *to = Ue8m0(*scale).doubled().unwrap_or(Ue8m0::NAN).0;
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (n, k) = (choices.between(1, 130), choices.pick(&[1, 32, 48, 128, 160]));
        (Requant { n, k, tile: choices.pick(&[32, 128]) }, Extents::default())
    }

    fn edges() -> Vec<(Self, Extents)> {
        let sizes = [(1, 1), (32, 32), (33, 31), (128, 128), (129, 160)];
        let case = |(n, k), tile| (Requant { n, k, tile }, Extents::default());
        sizes.iter().flat_map(|s| [case(*s, 32), case(*s, 128)]).collect()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        vec![(Requant { n: 32768, k: 1280, tile: 32 }, Extents::default())]
    }
}
