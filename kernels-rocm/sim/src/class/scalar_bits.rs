//! Scalar bits: logic, shifts, fields, counts, and the masks of active lanes.

use super::scalar::{Inputs, Row, flagged, nonzero, value};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = logic();
    rows.extend(shifts());
    rows.extend(fields());
    rows.extend(counts());
    rows
}

/// `and` in both widths and as a change of the active lanes.
fn logic() -> Vec<Row> {
    type Logic = fn(u64, u64) -> u64;
    let both: [(&str, &str, &str, Logic); 8] = [
        ("s_and_b32", "s_and_b64", "s_and_saveexec_b64", |a, b| a & b),
        ("s_or_b32", "s_or_b64", "s_or_saveexec_b64", |a, b| a | b),
        ("s_xor_b32", "s_xor_b64", "s_xor_saveexec_b64", |a, b| a ^ b),
        ("s_andn2_b32", "s_andn2_b64", "s_andn2_saveexec_b64", |a, b| a & !b),
        ("s_orn2_b32", "s_orn2_b64", "s_orn2_saveexec_b64", |a, b| a | !b),
        ("s_nand_b32", "s_nand_b64", "s_nand_saveexec_b64", |a, b| !(a & b)),
        ("s_nor_b32", "s_nor_b64", "s_nor_saveexec_b64", |a, b| !(a | b)),
        ("s_xnor_b32", "s_xnor_b64", "s_xnor_saveexec_b64", |a, b| !(a ^ b)),
    ];
    let mut rows = Vec::new();
    for (word, pair, save, logic) in both {
        rows.push(Row::new(word, 1, &[1, 1], move |i| nonzero(logic(i.a, i.b) as u32)));
        rows.push(Row::new(pair, 2, &[2, 2], move |i| nonzero(logic(i.a, i.b))));
        // The second input is the mask of active lanes.
        rows.push(Row::new(save, 2, &[2], move |i| nonzero(logic(i.a, i.b))).saves_exec());
    }
    rows.push(Row::new("s_andn1_saveexec_b64", 2, &[2], |i| nonzero(!i.a & i.b)).saves_exec());
    rows.push(Row::new("s_orn1_saveexec_b64", 2, &[2], |i| nonzero(!i.a | i.b)).saves_exec());
    rows.push(Row::new("s_not_b32", 1, &[1], |i| nonzero(!i.a as u32)));
    rows.push(Row::new("s_not_b64", 2, &[2], |i| nonzero(!i.a)));
    rows
}

fn shifts() -> Vec<Row> {
    vec![
        Row::new("s_lshl_b32", 1, &[1, 1], |i| nonzero((i.a as u32) << (i.b & 31))),
        Row::new("s_lshr_b32", 1, &[1, 1], |i| nonzero(i.a >> (i.b & 31))),
        Row::new("s_ashr_i32", 1, &[1, 1], |i| nonzero((i.a as i32 >> (i.b & 31)) as u32)),
        Row::new("s_lshl_b64", 2, &[2, 1], |i| nonzero(i.a << (i.b & 63))),
        Row::new("s_lshr_b64", 2, &[2, 1], |i| nonzero(i.a >> (i.b & 63))),
        Row::new("s_ashr_i64", 2, &[2, 1], |i| nonzero((i.a as i64 >> (i.b & 63)) as u64)),
    ]
}

/// `count` bits of `x` from `first` on.
fn field(x: u64, first: u32, count: u32) -> u64 {
    match count {
        0 => 0,
        64.. => x >> first,
        _ => x >> first & ((1 << count) - 1),
    }
}

/// The same, with the field's highest bit as its sign.
fn signed_field(x: u64, first: u32, count: u32) -> i64 {
    if count == 0 {
        return 0;
    }
    let up = 64 - count.min(64);
    (field(x, first, count) << up) as i64 >> up
}

/// First bit and number of bits, as a field's second operand holds them.
fn place(i: Inputs, most: u32) -> (u32, u32) {
    (i.b as u32 & most, (i.b as u32 >> 16 & 0x7f).min(most + 1))
}

fn fields() -> Vec<Row> {
    vec![
        Row::new("s_bfe_u32", 1, &[1, 1], |i| {
            let (first, count) = place(i, 31);
            nonzero(field(i.a, first, count))
        }),
        Row::new("s_bfe_i32", 1, &[1, 1], |i| {
            let (first, count) = place(i, 31);
            // A field that ends behind the word has the word's sign.
            let count = count.min(32 - first);
            nonzero(signed_field(i.a, first, count) as u32)
        }),
        Row::new("s_bfe_u64", 2, &[2, 1], |i| {
            let (first, count) = place(i, 63);
            nonzero(field(i.a, first, count))
        }),
        Row::new("s_bfe_i64", 2, &[2, 1], |i| {
            let (first, count) = place(i, 63);
            nonzero(signed_field(i.a, first, count.min(64 - first)) as u64)
        }),
        Row::new("s_bfm_b32", 1, &[1, 1], |i| value(((1u32 << (i.a & 31)) - 1) << (i.b & 31))),
        Row::new("s_bfm_b64", 2, &[1, 1], |i| value(((1u64 << (i.a & 63)) - 1) << (i.b & 63))),
        Row::new("s_bitset0_b32", 1, &[1, 1], |i| value(i.a as u32 & !(1 << (i.b & 31))))
            .accumulates(),
        Row::new("s_bitset1_b32", 1, &[1, 1], |i| value(i.a as u32 | 1 << (i.b & 31)))
            .accumulates(),
        Row::new("s_brev_b32", 1, &[1], |i| value((i.a as u32).reverse_bits())),
        Row::new("s_brev_b64", 2, &[2], |i| value(i.a.reverse_bits())),
        Row::new("s_wqm_b64", 2, &[2], |i| {
            let quads = (0..16).filter(|quad| i.a >> (4 * quad) & 0xf != 0);
            nonzero(quads.fold(0u64, |mask, quad| mask | 0xf << (4 * quad)))
        }),
    ]
}

/// A count of zeros, or all ones where there is nothing else.
fn found(is_there: bool, count: u32) -> u32 {
    if is_there { count } else { u32::MAX }
}

fn counts() -> Vec<Row> {
    vec![
        Row::new("s_ff1_i32_b32", 1, &[1], |i| value(found(i.a != 0, i.a.trailing_zeros()))),
        Row::new("s_ff1_i32_b64", 1, &[2], |i| value(found(i.a != 0, i.a.trailing_zeros()))),
        Row::new("s_ff0_i32_b32", 1, &[1], |i| {
            value(found(i.a as u32 != u32::MAX, i.a.trailing_ones()))
        }),
        Row::new("s_ff0_i32_b64", 1, &[2], |i| value(found(i.a != u64::MAX, i.a.trailing_ones()))),
        Row::new("s_flbit_i32_b32", 1, &[1], |i| {
            value(found(i.a != 0, (i.a as u32).leading_zeros()))
        }),
        Row::new("s_flbit_i32_b64", 1, &[2], |i| value(found(i.a != 0, i.a.leading_zeros()))),
        Row::new("s_flbit_i32", 1, &[1], |i| {
            // Bits that equal the sign, the sign among them.
            let x = i.a as i32;
            let same = if x < 0 { (!x).leading_zeros() } else { x.leading_zeros() };
            value(found(same < 32, same))
        }),
        Row::new("s_bcnt0_i32_b32", 1, &[1], |i| count((i.a as u32).count_zeros())),
        Row::new("s_bcnt0_i32_b64", 1, &[2], |i| count(i.a.count_zeros())),
        Row::new("s_bcnt1_i32_b32", 1, &[1], |i| count(i.a.count_ones())),
        Row::new("s_bcnt1_i32_b64", 1, &[2], |i| count(i.a.count_ones())),
    ]
}

fn count(count: u32) -> super::scalar::Outcome {
    flagged(count, count != 0)
}
