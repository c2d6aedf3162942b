//! Launches made of picked rows of another launch.

use std::collections::BTreeSet;
use tandem_hal::{Dim, Domain, Extents, Operand, Sym, View};

/// Whether an operand's first axis is the independent rows.
pub fn by_rows(operand: &Operand, rows: Sym) -> bool {
    !operand.absent && operand.dims.first() == Some(&Dim::Of(rows))
}

/// Operand bytes of the rows `picks` of a launch with `extents`; operands without the axis stay
/// whole. A target that must not occur twice is -1 from its second pick on.
pub fn pick(
    operand: &Operand,
    rows: Sym,
    extents: &Extents,
    bytes: &[u8],
    picks: &[u64],
) -> Vec<u8> {
    if !by_rows(operand, rows) || bytes.is_empty() {
        return bytes.to_vec();
    }
    let (codes, _) = View::size(operand.enc, &operand.shape(extents)).expect("a case fits 64 bits");
    let (codes, scales) = bytes.split_at(codes as usize);
    let step = |all: &[u8]| all.len() / extents.at(rows).max(1) as usize;
    let take = |all: &[u8], row: u64| {
        let step = step(all);
        all[row as usize * step..][..step].to_vec()
    };
    let distinct = matches!(operand.domain, Domain::Index { distinct: true, .. });
    let mut used = BTreeSet::new();
    let mut picked: Vec<u8> = vec![];
    for &row in picks {
        let fresh = used.insert(row);
        let bytes = take(codes, row);
        picked.extend(if distinct && !fresh { vec![0xFF; bytes.len()] } else { bytes });
    }
    picked.extend(picks.iter().flat_map(|row| take(scales, *row)));
    picked
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::{Enc, IndexBound};

    #[test]
    fn codes_and_scales_move_together() {
        let x = Operand::new(Enc::Q8, &[Dim::Of(Sym::Tokens), Dim::Is(32)]);
        let mut bytes: Vec<u8> = (0..3).flat_map(|r| [r; 32]).collect();
        bytes.extend([10, 11, 12]);
        let extents = Extents::of(&[(Sym::Tokens, 3)]);
        let picked = pick(&x, Sym::Tokens, &extents, &bytes, &[2, 0]);
        assert_eq!(picked[..32], [2; 32]);
        assert_eq!(picked[32..64], [0; 32]);
        assert_eq!(picked[64..], [12, 10]);
        assert_eq!(pick(&x, Sym::Outputs, &extents, &bytes, &[2]), bytes);
    }

    #[test]
    fn targets_occur_once() {
        let domain = Domain::Index { below: IndexBound::Fixed(9), distinct: true };
        let at = Operand::new(Enc::I32, &[Dim::Of(Sym::Tokens)]).domain(domain);
        let extents = Extents::of(&[(Sym::Tokens, 2)]);
        let picked = pick(&at, Sym::Tokens, &extents, &[5, 0, 0, 0, 7, 0, 0, 0], &[1, 1, 0]);
        assert_eq!(picked, [7, 0, 0, 0, 255, 255, 255, 255, 5, 0, 0, 0]);
    }
}
