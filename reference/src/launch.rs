//! One launch: from views to host tensors, without copies and without `unsafe`.
//!
//! Each reservation is locked once, in order of its number. Written ones are cut at the spans of the
//! outputs; the operand check guarantees that no output overlaps anything else, so the cuts exist.

use crate::{
    Card, Compute, Context, Tensor, TensorMut,
    layout::{EXPANDED, REVERSED},
    memory::{Memory, Reading, Writing},
    tensor::Form32,
};
use std::{collections::BTreeMap, ops::Range};
use tandem_hal::{Dir, Facts, IoSet, Ladder, Layout, Op, Result, Shape, Slot, View};

/// Operands of one launch, erased.
pub type Slots<'a> = Vec<Slot<Tensor<'a>, TensorMut<'a>>>;

/// What planted faults may touch besides operands.
#[derive(Default, Debug)]
pub struct Trespass {
    /// `(operand, bytes past its end)`: bytes flipped after the launch.
    pub spills: Vec<(usize, u64)>,
}

/// Advice around one operator's arithmetic: how faults are planted, captured graphs included. Gets
/// the operator, its operands, its workspace, and the arithmetic to call.
pub type Around = dyn Fn(&Op, &mut Slots<'_>, &mut [u8], &mut Trespass, &mut Arithmetic<'_>) -> Result<()>
    + Send
    + Sync;

/// The arithmetic under an [`Around`].
pub type Arithmetic<'f> = dyn FnMut(&mut Slots<'_>) -> Result<()> + 'f;

/// A chosen ladder, erased.
pub(crate) trait Run: Send + Sync {
    fn op(&self) -> &Op;
    fn facts(&self) -> &Facts;
    fn name(&self, rows: u64) -> &'static str;
    fn bits(&self) -> &'static str;
    fn compute(&self, rows: u64, slots: &mut Slots<'_>, context: &Context<'_>) -> Result<()>;
}

/// A chosen ladder.
pub(crate) struct Chosen<D: Card> {
    descriptor: D,
    op: Op,
    facts: Facts,
    ladder: Ladder<D, Compute<D>>,
}

impl<D: Card> Chosen<D> {
    pub(crate) fn new(descriptor: &D, ladder: Ladder<D, Compute<D>>) -> Self {
        let (op, facts) = (descriptor.clone().into(), Facts::of(descriptor));
        Chosen { descriptor: descriptor.clone(), op, facts, ladder }
    }
}

impl<D: Card> Run for Chosen<D> {
    fn op(&self) -> &Op {
        &self.op
    }
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn name(&self, rows: u64) -> &'static str {
        self.ladder.at(rows).map_or("none", |r| r.name)
    }
    fn bits(&self) -> &'static str {
        self.ladder.bits()
    }
    fn compute(&self, rows: u64, slots: &mut Slots<'_>, context: &Context<'_>) -> Result<()> {
        let row = self.ladder.at(rows).ok_or_else(|| tandem_hal::Error::Unsupported {
            op: D::ID.into(),
            reason: format!("the row forced for it does not take {rows} rows"),
        })?;
        let mut again = slots.iter_mut().map(reborrow);
        let io = <D::Io<Tensor<'_>, TensorMut<'_>> as IoSet<_, _>>::from_slots(&mut again);
        (row.launch)(&self.descriptor, io, context)
    }
}

fn reborrow<'a>(slot: &'a mut Slot<Tensor<'_>, TensorMut<'_>>) -> Slot<Tensor<'a>, TensorMut<'a>> {
    match slot {
        Slot::In(t) => Slot::In(t.clone()),
        Slot::Out(t) => Slot::Out(t.reborrow()),
    }
}

/// A lock held for the launch.
enum Guard<'a> {
    Read(Reading<'a>),
    Write(Writing<'a>),
}

/// A part of some reservation's bytes: reservation, first byte, bytes.
struct Piece<'a> {
    alloc: u64,
    start: u64,
    bytes: &'a [u8],
}

/// Which output bytes a cut is for: operand number, 0 for codes and 1 for scales.
type Cut = (usize, usize);

/// Run `run` on `views`, with `workspace` as scratch.
pub(crate) fn launch(
    run: &dyn Run,
    rows: u64,
    views: &[&View],
    workspace: &View,
    context: &Context<'_>,
    around: Option<&Around>,
) -> Result<()> {
    let written = |i: usize| run.facts().operands[i].1 != Dir::In;
    let mut held: BTreeMap<u64, (&Memory, bool)> = BTreeMap::new();
    for (i, view) in views.iter().enumerate().filter(|(_, v)| !v.is_empty()) {
        held.entry(view.alloc().id).or_insert((Memory::of(view)?, false)).1 |= written(i);
    }
    if !workspace.is_empty() {
        held.entry(workspace.alloc().id).or_insert((Memory::of(workspace)?, true)).1 = true;
    }
    let mut guards: Vec<(u64, Guard<'_>)> = held
        .into_iter()
        .map(|(id, (memory, write))| {
            (id, if write { Guard::Write(memory.write()) } else { Guard::Read(memory.read()) })
        })
        .collect();
    let mut trespass = Trespass::default();
    let result = {
        let mut cuts: Vec<(u64, Range<u64>, Cut)> = vec![];
        for (i, view) in views.iter().enumerate().filter(|(i, v)| written(*i) && !v.is_empty()) {
            let spans = view.spans().into_iter().enumerate();
            cuts.extend(spans.map(|(part, span)| (view.alloc().id, span, (i, part))));
        }
        let scratch: Cut = (views.len(), 0);
        cuts.push((workspace.alloc().id, workspace.spans()[0].clone(), scratch));
        let (shared, mut owned) = cut(&mut guards, cuts);
        let reversed: Vec<Vec<u8>> = views.iter().map(|v| unreverse(v, &shared)).collect();
        let mut slots: Slots<'_> = views
            .iter()
            .enumerate()
            .map(|(i, view)| {
                if written(i) {
                    Slot::Out(output(view, i, &mut owned))
                } else {
                    Slot::In(input(view, &shared, &reversed[i]))
                }
            })
            .collect();
        let mut compute = |slots: &mut Slots<'_>| run.compute(rows, slots, context);
        match around {
            None => compute(&mut slots),
            Some(advice) => {
                let scratch = owned.remove(&scratch).unwrap_or_default();
                advice(run.op(), &mut slots, scratch, &mut trespass, &mut compute)
            }
        }
    };
    for (operand, past) in trespass.spills {
        flip(&mut guards, views[operand], past);
    }
    result
}

/// Cut written reservations at the outputs; everything else is shared.
fn cut<'a>(
    guards: &'a mut [(u64, Guard<'_>)],
    mut cuts: Vec<(u64, Range<u64>, Cut)>,
) -> (Vec<Piece<'a>>, BTreeMap<Cut, &'a mut [u8]>) {
    cuts.sort_by_key(|(alloc, span, _)| (*alloc, span.start));
    let (mut shared, mut owned) = (vec![], BTreeMap::new());
    for (id, guard) in guards {
        let id = *id;
        match guard {
            Guard::Read(bytes) => shared.push(Piece { alloc: id, start: 0, bytes: bytes.bytes() }),
            Guard::Write(bytes) => {
                let (mut rest, mut base) = (bytes.bytes(), 0u64);
                for (_, span, key) in cuts.iter().filter(|(a, s, _)| *a == id && !s.is_empty()) {
                    let (gap, tail) = rest.split_at_mut((span.start - base) as usize);
                    shared.push(Piece { alloc: id, start: base, bytes: gap });
                    let (mine, tail) = tail.split_at_mut((span.end - span.start) as usize);
                    owned.insert(*key, mine);
                    (rest, base) = (tail, span.end);
                }
                shared.push(Piece { alloc: id, start: base, bytes: rest });
            }
        }
    }
    (shared, owned)
}

fn find<'a>(shared: &[Piece<'a>], alloc: u64, span: &Range<u64>) -> &'a [u8] {
    if span.is_empty() {
        return &[];
    }
    let holds = |p: &&Piece<'_>| {
        p.alloc == alloc && p.start <= span.start && span.end <= p.start + p.bytes.len() as u64
    };
    let piece = shared.iter().find(holds).expect("the operand check lets no output overlap inputs");
    &piece.bytes[(span.start - piece.start) as usize..(span.end - piece.start) as usize]
}

/// The plain bytes of a scrambled weight; nothing for other layouts.
fn unreverse(view: &View, shared: &[Piece<'_>]) -> Vec<u8> {
    if view.layout() != REVERSED {
        return vec![];
    }
    let (codes, scales) = View::size(view.enc(), view.shape()).expect("views have sizes");
    // Parts of a stacked weight were reversed one by one.
    let parts = if view.shape().len() > 2 { view.shape()[0] } else { 1 };
    let bytes = find(shared, view.alloc().id, &view.spans()[0]);
    let step = bytes.len() / parts as usize;
    let length = ((codes + scales) / parts) as usize;
    let part = |i: usize| bytes[i * step..i * step + length].iter().rev().copied();
    let (mut all_codes, mut all_scales) = (vec![], vec![]);
    for i in 0..parts as usize {
        let plain: Vec<u8> = part(i).collect();
        let (c, s) = plain.split_at((codes / parts) as usize);
        all_codes.extend_from_slice(c);
        all_scales.extend_from_slice(s);
    }
    all_codes.extend(all_scales);
    all_codes
}

fn input<'a>(view: &View, shared: &[Piece<'a>], reversed: &'a [u8]) -> Tensor<'a> {
    let (enc, shape) = (view.enc(), Shape::of(view.shape()));
    if view.is_empty() {
        let (stride, form) = (shape.cols() as usize, Form32::Encoded);
        return Tensor { enc, shape, stride, form, codes: &[], scales: &[], part: None };
    }
    let [codes, scales] = view.spans();
    match view.layout() {
        REVERSED => {
            let length = View::size(enc, view.shape()).expect("views have sizes").0 as usize;
            let (codes, scales) = reversed.split_at(length);
            Tensor::dense(enc, view.shape(), codes, scales)
        }
        EXPANDED => {
            let codes = find(shared, view.alloc().id, &codes);
            // The originals behind each part's floats are skipped over.
            let part = (view.shape().len() > 2).then(|| codes.len() / view.shape()[0] as usize);
            let (stride, form) = (shape.cols() as usize, Form32::Expanded);
            Tensor { enc, shape, stride, form, codes, scales: &[], part }
        }
        Layout::Plain | Layout::Private(_) => {
            let alloc = view.alloc().id;
            let (codes, scales) = (find(shared, alloc, &codes), find(shared, alloc, &scales));
            let (stride, form) = (view.stride() as usize, Form32::Encoded);
            Tensor { enc, shape, stride, form, codes, scales, part: None }
        }
    }
}

fn output<'a>(view: &View, i: usize, owned: &mut BTreeMap<Cut, &'a mut [u8]>) -> TensorMut<'a> {
    TensorMut {
        enc: view.enc(),
        shape: Shape::of(view.shape()),
        stride: view.stride() as usize,
        codes: owned.remove(&(i, 0)).unwrap_or_default(),
        scales: owned.remove(&(i, 1)).unwrap_or_default(),
        magnitude: None,
        exact: None,
    }
}

/// Invert the byte `past` bytes behind the codes of a view.
fn flip(guards: &mut [(u64, Guard<'_>)], view: &View, past: u64) {
    let at = (view.spans()[0].end + past) as usize;
    for (id, guard) in guards {
        if let (true, Guard::Write(bytes)) = (*id == view.alloc().id, guard)
            && let Some(byte) = bytes.bytes().get_mut(at)
        {
            *byte = !*byte;
        }
    }
}
