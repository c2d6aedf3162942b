//! Vector bits: moves, logic, shifts, fields, bytes, counts, choices.

use super::element::Bits;
use super::row::{Row, one, three, two};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = logic();
    rows.extend(shifts());
    rows.extend(fields());
    rows
}

fn logic() -> Vec<Row> {
    vec![
        one("v_mov_b32", |a: Bits| a),
        one("v_mov_b64", |a: u64| a),
        one("v_accvgpr_read_b32", |a: u32| a),
        one("v_accvgpr_write_b32", |a: u32| a),
        one("v_accvgpr_mov_b32", |a: u32| a),
        one("v_not_b32", |a: u32| !a),
        two("v_and_b32", |a: u32, b: u32| a & b),
        two("v_or_b32", |a: u32, b: u32| a | b),
        two("v_xor_b32", |a: u32, b: u32| a ^ b),
        two("v_xnor_b32", |a: u32, b: u32| !(a ^ b)),
        three("v_and_or_b32", |a: u32, b: u32, c: u32| a & b | c),
        three("v_or3_b32", |a: u32, b: u32, c: u32| a | b | c),
        three("v_bfi_b32", |a: u32, b: u32, c: u32| a & b | !a & c),
        three("v_cndmask_b32", |a: Bits, b: Bits, second: bool| if second { b } else { a }),
        one("v_bfrev_b32", |a: u32| a.reverse_bits()),
        two("v_bcnt_u32_b32", |a: u32, b: u32| a.count_ones().wrapping_add(b)),
        one("v_ffbh_u32", |a: u32| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        one("v_ffbl_b32", |a: u32| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
        one("v_ffbh_i32", |a: i32| {
            let same = if a < 0 { (!a).leading_zeros() } else { a.leading_zeros() };
            if same == 32 { u32::MAX } else { same }
        }),
    ]
}

fn shifts() -> Vec<Row> {
    let wide = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
    vec![
        two("v_lshlrev_b32", |a: u32, b: u32| b << (a & 31)),
        two("v_lshrrev_b32", |a: u32, b: u32| b >> (a & 31)),
        two("v_ashrrev_i32", |a: u32, b: i32| b >> (a & 31)),
        two("v_lshlrev_b64", |a: u32, b: u64| b << (a & 63)),
        two("v_lshrrev_b64", |a: u32, b: u64| b >> (a & 63)),
        two("v_ashrrev_i64", |a: u32, b: i64| b >> (a & 63)),
        three("v_lshl_or_b32", |a: u32, b: u32, c: u32| a << (b & 31) | c),
        three("v_alignbit_b32", move |a: u32, b: u32, c: u32| (wide(a, b) >> (c & 31)) as u32),
        three("v_alignbyte_b32", move |a: u32, b: u32, c: u32| {
            (wide(a, b) >> (8 * (c & 3))) as u32
        }),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        three("v_bfe_u32", |a: u32, first: u32, count: u32| {
            a >> (first & 31) & ((1 << (count & 31)) - 1)
        }),
        three("v_bfe_i32", |a: i32, first: u32, count: u32| {
            let (first, count) = (first & 31, count & 31);
            if count == 0 {
                return 0;
            }
            // A field that ends behind the word has the word's sign.
            let up = 32 - count.min(32 - first);
            if first + count > 32 { a >> first } else { a << (up - first) >> up }
        }),
        two("v_bfm_b32", |count: u32, first: u32| ((1u32 << (count & 31)) - 1) << (first & 31)),
        three("v_perm_b32", |a: u32, b: u32, selectors: u32| {
            let bytes = u64::from(a) << 32 | u64::from(b);
            let chosen = selectors.to_le_bytes().map(|selector| permuted(bytes, selector));
            u32::from_le_bytes(chosen)
        }),
    ]
}

/// The byte that a selector names: one of eight, the sign of one of four shorts, or a constant.
fn permuted(bytes: u64, selector: u8) -> u8 {
    let sign = |bit: u32| if bytes >> bit & 1 != 0 { 0xff } else { 0 };
    match selector {
        0..=7 => (bytes >> (8 * selector)) as u8,
        8..=11 => sign(16 * u32::from(selector - 8) + 15),
        12 => 0,
        _ => 0xff,
    }
}
