//! Card of [`Scores`].

use super::queries::Queries;
use crate::{Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row};
use tandem_hal::{Cache, Extents, Form, Real, Record, Result, Row, Scores, ScoresIo, Sym};

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|v| f64::from(*v)).collect()
}

/// Scores over keys of MXFP4 unless said otherwise.
pub(super) fn descriptor(heads: u64, head_dim: u64, form: Form, page_entries: u64) -> Scores {
    let record = Record::new(form, head_dim as u32);
    let scale = ((head_dim * heads) as f32).sqrt().recip();
    let keys = Cache { record, page_entries, pages: Sym::Pages };
    Scores { heads, head_dim, keys, scale: Real::new(scale) }
}

/// Three sequences of at most `entries` entries.
pub(super) fn extents(tokens: u64, entries: u64, page_entries: u64) -> Extents {
    let pages = entries.div_ceil(page_entries).max(1);
    Extents::of(&[
        (Sym::Tokens, tokens),
        (Sym::Entries, entries),
        (Sym::Sequences, 3),
        (Sym::TablePages, pages),
        (Sym::Pages, 3 * pages),
    ])
}

/// One short request, requests of one row and of one with its drafts at a long context, and chunks
/// of a prompt. The pool holds more keys than any cache on the chip.
pub(super) fn requests() -> Vec<Extents> {
    let one = |requests: u64, rows: u64, entries: u64| {
        let pages = entries / 32;
        Extents::of(&[
            (Sym::Tokens, requests * rows),
            (Sym::Entries, entries),
            (Sym::Sequences, requests),
            (Sym::TablePages, pages),
            (Sym::Pages, requests.max(40) * pages),
        ])
    };
    let decode = [1, 8, 64].into_iter().flat_map(|n| [1, 6].map(|rows| one(n, rows, 1 << 17)));
    let short = Extents::of(&[
        (Sym::Tokens, 1),
        (Sym::Entries, 1 << 12),
        (Sym::Sequences, 1),
        (Sym::TablePages, 128),
        (Sym::Pages, 128),
    ]);
    let prefill = [1024, 4096].map(|rows| one(1, rows, 1 << 15));
    [short].into_iter().chain(decode).chain(prefill).collect()
}

fn case(heads: u64, head_dim: u64, tokens: u64, entries: u64) -> (Scores, Extents) {
    (descriptor(heads, head_dim, Form::Mxfp4, 32), extents(tokens, entries, 32))
}

impl Card for Scores {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let (queries, mut y) = split(io);
        for t in 0..queries.rows() {
            y.set_row(t, &wide(&queries.scalar(self, t)));
            if y.wants_magnitude() {
                y.set_magnitude(t, &queries.magnitudes(self, t));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let (queries, mut y) = split(io);
                    for (t, row) in queries.blocked(d, 0..queries.rows()).iter().enumerate() {
                        y.set_row(t, &wide(row));
                    }
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        // A sum over heads in fp32, half an epsilon each, of dots that are exact or promoted at
        // least every 32 products.
        let units = self.heads as f64 / 2.0 + self.head_dim as f64 / 32.0 + 8.0;
        Tolerance::Bound { gamma: units * f64::from(f32::EPSILON) }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let form = choices.pick(&[Form::Mxfp4, Form::Fp8, Form::Bf16]);
        let page_entries = choices.between(1, 33);
        let d = descriptor(choices.between(1, 5), 32 * choices.between(1, 4), form, page_entries);
        (d, extents(choices.between(0, 5), choices.between(0, 70), page_entries))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![
            case(4, 128, 0, 8),
            case(4, 128, 2, 0),
            case(1, 32, 1, 1),
            case(32, 128, 3, 65),
            case(4, 128, 4, 300),
        ]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let d = descriptor(32, 128, Form::Mxfp4, 32);
        requests().into_iter().map(|extents| (d.clone(), extents)).collect()
    }
}

/// The operands that are read, and the one written.
fn split<'a>(io: Host<'a, Scores>) -> (Queries<'a>, crate::TensorMut<'a>) {
    let ScoresIo { q, weight, keys, sequence, table, visible, y } = io;
    let entries = y.cols();
    (Queries { q, weight, keys, sequence, table, visible, entries }, y)
}
