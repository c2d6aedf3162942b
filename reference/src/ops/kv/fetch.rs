//! Card of [`Fetch`].

use super::store::record;
use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{Cache, Elem, Extents, Fetch, FetchIo, Form, Record, Result, Sym};

fn case(form: Form, width: u64, page_entries: u64, y: Elem, tokens: u64) -> (Fetch, Extents) {
    let record = Record::new(form, width as u32);
    let cache = Cache { record, page_entries, pages: Sym::Pages };
    (Fetch { cache, y }, Extents::of(&[(Sym::Tokens, tokens), (Sym::Pages, 3)]))
}

impl Card for Fetch {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let FetchIo { cache, at, mut y } = io;
        for t in 0..at.cols() {
            match cache.entry(at.int(0, t)) {
                Some(vector) => y.set_row_f32(t, &vector),
                None => y.clear_row(t),
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (form, width) = record(choices);
        let y = choices.pick(&[Elem::Bf16, Elem::F32]);
        case(form, width, choices.between(1, 9), y, choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let mut cases: Vec<_> =
            Form::ALL.iter().map(|form| case(*form, 512, 32, Elem::Bf16, 5)).collect();
        cases.push(case(Form::Nvfp4, 512, 32, Elem::F32, 0));
        cases
    }
}
