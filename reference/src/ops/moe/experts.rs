//! What operators over routed experts share: slots, and the projection of each through its expert.

use crate::{Choices, Tensor, simd, sum, threads};
use std::collections::BTreeMap;
use tandem_hal::{Experts, Extents, Sym};

/// The inputs of the slots, by slot.
pub(super) type Inputs<'a> = &'a (dyn Fn(usize) -> &'a [f32] + Sync);

/// Either of [`scalar`] and [`blocked`].
pub(super) type Project = fn(&Slots, &Tensor<'_>, usize, Inputs<'_>) -> Vec<f64>;

/// Outputs that are one piece of work.
const OUTPUTS: usize = 16;

/// Where each slot of a launch finds its expert. Slot `t top_k + i` is the i-th of row t.
pub(super) struct Slots {
    /// The expert's place among those held here; `None` for -1, outside and elsewhere.
    pub(super) held: Vec<Option<usize>>,
}

impl Slots {
    pub(super) fn of(experts: &Experts, expert: &Tensor<'_>) -> Slots {
        let rows = if expert.is_empty() { 0 } else { expert.rows() };
        let held = |index: i32| {
            let e = u64::try_from(index).ok().filter(|e| *e < experts.total)?;
            e.checked_sub(experts.first).filter(|e| *e < experts.local).map(|e| e as usize)
        };
        Slots { held: (0..rows).flat_map(|t| expert.ints(t)).map(held).collect() }
    }

    /// The slots of each expert that occurs.
    fn by_expert(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (slot, expert) in self.held.iter().enumerate() {
            if let Some(expert) = expert {
                groups.entry(*expert).or_default().push(slot);
            }
        }
        groups
    }

    /// The slots of row `t` that have an expert, in order of ascending expert.
    pub(super) fn ascending(&self, t: usize, top_k: usize) -> Vec<usize> {
        let mut slots: Vec<usize> = (t * top_k..(t + 1) * top_k).collect();
        slots.retain(|slot| self.held[*slot].is_some());
        slots.sort_by_key(|slot| self.held[*slot]);
        slots
    }
}

/// `W_e x` of every slot, `[slots, outputs]` before rounding, zeros without an expert; one dot
/// product per element: the definition.
pub(super) fn scalar(
    slots: &Slots,
    weight: &Tensor<'_>,
    outputs: usize,
    x: Inputs<'_>,
) -> Vec<f64> {
    let mut products = vec![0.0; slots.held.len() * outputs];
    for (slot, held) in slots.held.iter().enumerate() {
        let Some(expert) = held else { continue };
        for n in 0..outputs {
            products[slot * outputs + n] = sum::dot(x(slot), &weight.row(expert * outputs + n));
        }
    }
    products
}

/// The magnitudes of [`scalar`], `Σ |x w|`.
pub(super) fn magnitudes(
    slots: &Slots,
    weight: &Tensor<'_>,
    outputs: usize,
    x: Inputs<'_>,
) -> Vec<f64> {
    let mut magnitudes = vec![0.0; slots.held.len() * outputs];
    for (slot, held) in slots.held.iter().enumerate() {
        let Some(expert) = held else { continue };
        for n in 0..outputs {
            let w = weight.row(expert * outputs + n);
            magnitudes[slot * outputs + n] = sum::dot_magnitude(x(slot), &w);
        }
    }
    magnitudes
}

/// The bits of [`scalar`]: each weight row of an expert is walked once for all its slots.
pub(super) fn blocked(
    slots: &Slots,
    weight: &Tensor<'_>,
    outputs: usize,
    x: Inputs<'_>,
) -> Vec<f64> {
    let groups = slots.by_expert();
    let pieces: Vec<(usize, &[usize], usize)> = groups
        .iter()
        .flat_map(|(e, group)| (0..outputs).step_by(OUTPUTS).map(|n| (*e, &group[..], n)))
        .collect();
    let slots_a_piece = groups.values().map(Vec::len).max().unwrap_or(1);
    let piece = OUTPUTS * weight.cols().max(1) * slots_a_piece;
    let parts = threads::collect(pieces.len(), piece, |i| {
        let (e, group, n) = pieces[i];
        part(weight, e * outputs + n, OUTPUTS.min(outputs - n), group, x)
    });
    let mut products = vec![0.0; slots.held.len() * outputs];
    for (&(_, group, n), part) in pieces.iter().zip(&parts) {
        let width = OUTPUTS.min(outputs - n);
        for (slot, values) in group.iter().zip(part.chunks_exact(width)) {
            products[slot * outputs + n..][..width].copy_from_slice(values);
        }
    }
    products
}

/// Products of `width` weight rows from `first` with each slot of the group, slot-major.
fn part(
    weight: &Tensor<'_>,
    first: usize,
    width: usize,
    group: &[usize],
    x: Inputs<'_>,
) -> Vec<f64> {
    let mut products = vec![0.0; group.len() * width];
    for n in (0..width).step_by(4) {
        let rows = [0, 1, 2, 3].map(|i| weight.row(first + (n + i).min(width - 1)));
        let w = [&*rows[0], &*rows[1], &*rows[2], &*rows[3]];
        for (slot, to) in group.iter().zip(products.chunks_exact_mut(width)) {
            for (to, value) in to[n..].iter_mut().zip(simd::dot4(x(*slot), w)) {
                *to = value;
            }
        }
    }
    products
}

/// Some experts, as small as cases may be.
pub(super) fn draw(choices: &mut dyn Choices) -> (Experts, Extents) {
    let total = choices.between(1, 8);
    let first = choices.below(total);
    let local = 1 + choices.below(total - first);
    let top_k = choices.between(1, total.min(3));
    let (hidden, inter) = (32 * choices.between(1, 3), 32 * choices.between(1, 2));
    let experts = Experts { total, first, local, top_k, hidden, inter };
    (experts, tokens(choices.between(0, 9)))
}

/// `tokens` rows.
pub(super) fn tokens(tokens: u64) -> Extents {
    Extents::of(&[(Sym::Tokens, tokens)])
}

/// All experts here.
pub(super) fn all(total: u64, top_k: u64, hidden: u64, inter: u64) -> Experts {
    Experts { total, first: 0, local: total, top_k, hidden, inter }
}

/// Row counts around tiles, widths that broke kernels, none and one.
pub(super) fn edges() -> Vec<(Experts, Extents)> {
    let mut cases: Vec<_> =
        [0, 1, 8, 16, 32, 63, 64].iter().map(|t| (all(2, 1, 32, 32), tokens(*t))).collect();
    cases.extend([1, 64].map(|t| (all(8, 2, 32, 32), tokens(t))));
    cases.extend([(32, 288), (64, 768), (768, 32)].map(|(h, i)| (all(3, 2, h, i), tokens(7))));
    let part = Experts { first: 2, local: 2, ..all(6, 3, 64, 32) };
    cases.extend([1, 5].map(|t| (part.clone(), tokens(t))));
    cases
}

/// The experts of the model as one of eight ranks holds them, all of them, and those of its drafter.
pub(super) fn bench_shapes() -> Vec<(Experts, Extents)> {
    let model = all(384, 6, 5120, 2304);
    let rank = Experts { local: 48, ..model.clone() };
    let shapes: [(Experts, &[u64]); 3] = [
        (rank, &[1, 8, 64, 512, 1024, 4096, 8192]),
        (model, &[1, 64]),
        (all(128, 3, 5120, 2304), &[6, 48, 384]),
    ];
    let each = |(e, counts): (Experts, &[u64])| -> Vec<_> {
        counts.iter().map(|t| (e.clone(), tokens(*t))).collect()
    };
    shapes.into_iter().flat_map(each).collect()
}
