//! Card of [`NormRotateStore`].

use crate::ops::norm::rms_rotate::{GAMMA, normalise_and_rotate};
use crate::ops::norm::rotate::{Rotation, queries};
use crate::{
    Card, Choices, Compute, Context, Host, Tensor, Tolerance, blocked_row, scalar_row, tensor_mut,
    threads,
};
use tandem_hal::num::bf16;
use tandem_hal::{
    Cache, Extents, Form, NormRotateStore, NormRotateStoreIo, Real, Record, Result, Rotate, Row,
    Sym,
};

/// The latent of row `t`, rounded to bf16 as between the steps.
fn latent(
    d: &NormRotateStore,
    rotation: &Rotation,
    x: &[f32],
    weight: &[f32],
    position: i32,
) -> Vec<f32> {
    let turns = rotation.turns(position).unwrap_or_default();
    let mut values = vec![0.0; x.len()];
    normalise_and_rotate(x, weight, d.eps, &turns, &mut values);
    // A step leaves the one quiet NaN, and so must this.
    let round = |v: &f64| if v.is_nan() { f32::NAN } else { bf16::round_f64(*v) };
    values.iter().map(round).collect()
}

fn case(form: Form, rotate: Rotate, page_entries: u64, tokens: u64) -> (NormRotateStore, Extents) {
    let record = Record::new(form, rotate.head_dim as u32);
    let cache = Cache { record, page_entries, pages: Sym::WindowPages };
    let pages = (tokens + 2).div_ceil(page_entries);
    let d = NormRotateStore { eps: Real::new(1e-20), rotate, cache };
    (d, Extents::of(&[(Sym::Tokens, tokens), (Sym::WindowPages, pages)]))
}

fn keys(head_dim: u64, long: bool) -> Rotate {
    Rotate { heads: 1, head_dim, ..queries(long) }
}

/// What every row of a launch shares.
struct Latents<'a> {
    d: &'a NormRotateStore,
    rotation: Rotation,
    x: Tensor<'a>,
    weight: Vec<f32>,
    position: Tensor<'a>,
}

impl Latents<'_> {
    fn at(&self, t: usize) -> Vec<f32> {
        latent(self.d, &self.rotation, &self.x.row(t), &self.weight, self.position.int(0, t))
    }
}

impl Card for NormRotateStore {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let NormRotateStoreIo { x, weight, position, at, mut cache } = io;
        let weight = weight.row(0).into_owned();
        let latents =
            Latents { d: self, rotation: Rotation::of(&self.rotate), x, weight, position };
        for t in 0..at.cols() {
            cache.set_entry(at.int(0, t), &latents.at(t));
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let NormRotateStoreIo { x, weight, position, at, mut cache } = io;
                    let weight = weight.row(0).into_owned();
                    let rotation = Rotation::of(&d.rotate);
                    let latents = Latents { d, rotation, x, weight, position };
                    let operations = 12 * latents.x.cols();
                    let entries = threads::collect(at.cols(), operations, |t| {
                        tensor_mut::entry_bytes(d.cache.record, &latents.at(t))
                    });
                    for (t, bytes) in entries.iter().enumerate() {
                        cache.set_entry_bytes(at.int(0, t), bytes);
                    }
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: GAMMA }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let form = choices.pick(&[Form::Mxfp8, Form::Mxfp8Fnuz, Form::Nvfp4, Form::Bf16]);
        let rotate = keys(choices.pick(&[64, 128, 512]), choices.flag());
        let rotate = Rotate { group: choices.pick(&[1, 2]), ..rotate };
        case(form, rotate, choices.between(1, 33), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![
            case(Form::Mxfp8, keys(512, true), 32, 0),
            case(Form::Mxfp8, keys(512, false), 32, 65),
            case(Form::Fp8Rope, keys(512, true), 32, 2),
            case(Form::F32, keys(64, true), 1, 3),
        ]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|t| case(Form::Mxfp8, keys(512, true), 32, t)).to_vec()
    }
}
