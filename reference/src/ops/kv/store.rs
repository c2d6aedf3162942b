//! Card of [`Store`].

use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row, tensor_mut, threads,
};
use std::borrow::Cow;
use tandem_hal::num::bf16;
use tandem_hal::{Cache, Elem, Extents, Form, Record, Result, Row, Store, StoreIo, Sym};

/// What a row stores: a quantising record takes bf16.
pub(super) fn rounded(record: Record, x: Cow<'_, [f32]>) -> Cow<'_, [f32]> {
    match record.form {
        Form::F32 => x,
        _ => x.iter().map(|v| bf16::round_f32(*v)).collect(),
    }
}

fn case(form: Form, width: u64, page_entries: u64, x: Elem, tokens: u64) -> (Store, Extents) {
    let record = Record::new(form, width as u32);
    let pages = (tokens + 2).div_ceil(page_entries);
    let cache = Cache { record, page_entries, pages: Sym::Pages };
    (Store { cache, x }, Extents::of(&[(Sym::Tokens, tokens), (Sym::Pages, pages)]))
}

impl Card for Store {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let StoreIo { x, at, mut cache } = io;
        for t in 0..at.cols() {
            cache.set_entry(at.int(0, t), &rounded(self.cache.record, x.row(t)));
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let StoreIo { x, at, mut cache } = io;
                    let record = d.cache.record;
                    let operations = 8 * record.width as usize;
                    let entries = threads::collect(at.cols(), operations, |t| {
                        tensor_mut::entry_bytes(record, &rounded(record, x.row(t)))
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
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (form, width) = record(choices);
        let x = choices.pick(&[Elem::Bf16, Elem::F32]);
        case(form, width, choices.between(1, 9), x, choices.between(0, 20))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let mut cases: Vec<_> =
            Form::ALL.iter().map(|form| case(*form, 512, 32, Elem::Bf16, 33)).collect();
        cases.extend([
            case(Form::Mxfp8, 512, 32, Elem::Bf16, 0),
            case(Form::Mxfp4, 128, 64, Elem::F32, 1),
            case(Form::F32, 1024, 8, Elem::F32, 7),
            case(Form::Fp8, 1, 1, Elem::F32, 3),
        ]);
        cases
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let shapes = [(Form::Mxfp8, 512, 32), (Form::Nvfp4, 512, 32), (Form::Mxfp4, 128, 32)];
        let tokens = [1, 32, 8192];
        let shape = |(form, width, page)| tokens.map(|t| case(form, width, page, Elem::Bf16, t));
        shapes.into_iter().flat_map(shape).collect()
    }
}

/// A record form and a width that it can have.
pub(super) fn record(choices: &mut dyn Choices) -> (Form, u64) {
    let form = choices.pick(Form::ALL);
    let blocks = choices.between(1, 5);
    let width = match form {
        Form::Fp8Rope => 64 + 64 * blocks,
        Form::Fp8 | Form::Bf16 | Form::F32 => 7 * blocks,
        _ => Record::new(form, 0).block() * blocks,
    };
    (form, width)
}
