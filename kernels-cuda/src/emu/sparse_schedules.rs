//! `attn.sparse` on its tuned row under many schedules, whole and with one of its waits left out at a time.

use super::schedules::{Case, codes, every_wait_is_needed};
use tandem_hal::{Cache, Extents, Form, Real, Record, SparseAttention, Sym};

const PAGE: u64 = 16;
const PAGES: u64 = 5;

/// Entries of a cache, whose scales are `scale(byte)`.
fn entries(record: Record, seed: u64, scale: impl Fn(u8) -> u8) -> Vec<u8> {
    let (bytes, width) = (record.bytes() as usize, record.width as usize);
    let from = if record.form == Form::Nvfp4 { width / 2 } else { width };
    let mut all = codes(PAGES * PAGE * record.bytes(), seed);
    for entry in all.chunks_exact_mut(bytes) {
        entry[from..].iter_mut().for_each(|byte| *byte = scale(*byte));
    }
    all
}

/// Addresses of lists of `count`, some of them of nothing.
fn addresses(tokens: u64, count: u64, step: u64) -> Vec<u8> {
    let at = |i: u64| if i % 11 == 3 { -1 } else { (i * step % (PAGES * PAGE)) as i32 };
    (0..tokens * count).flat_map(|i| at(i).to_ne_bytes()).collect()
}

/// Numbers of bf16.
fn numbers(count: u64, seed: u64) -> Vec<u8> {
    let high = |byte: u8| 0x3E + (byte & 0x81);
    codes(count, seed).into_iter().flat_map(|byte| [byte, high(byte)]).collect()
}

/// Rows of heads of `head_dim`, whose window has scales of `scale`.
fn sparse(
    (heads, head_dim): (u64, u64),
    [window_count, selected_count]: [u64; 2],
    tokens: u64,
    scale: impl Fn(u8) -> u8,
) -> Case<'static, SparseAttention> {
    let cache = |form, pages| Cache {
        record: Record::new(form, head_dim as u32),
        page_entries: PAGE,
        pages,
    };
    let window = cache(Form::Mxfp8, Sym::WindowPages);
    let selected = cache(Form::Nvfp4, Sym::Pages);
    let sink = (0..heads).flat_map(|i| (i as f32).to_ne_bytes()).collect();
    Case {
        descriptor: Box::leak(Box::new(SparseAttention {
            heads,
            head_dim,
            window: window.clone(),
            window_count,
            selected: Some(selected.clone()),
            selected_count,
            scale: Real::new(0.05),
            sink: true,
            lse: true,
        })),
        row: "whole",
        extents: Extents::of(&[
            (Sym::Tokens, tokens),
            (Sym::WindowPages, PAGES),
            (Sym::Pages, PAGES),
        ]),
        operands: vec![
            (numbers(tokens * heads * head_dim, 1), vec![], head_dim),
            (entries(window.record, 2, scale), vec![], PAGE),
            (addresses(tokens, window_count, 7), vec![], window_count),
            (entries(selected.record, 3, |byte| 0x30 + byte % 16), vec![], PAGE),
            (addresses(tokens, selected_count, 13), vec![], selected_count),
            (sink, vec![], heads),
            (vec![0; (tokens * heads * head_dim * 2) as usize], vec![], head_dim),
            (vec![0; (tokens * heads * 4) as usize], vec![], heads),
        ],
        output: 6,
    }
}

#[test]
fn whole_lists_need_each_of_their_waits() {
    let tame = |byte: u8| 122 + byte % 4;
    // What is not there yet is NaN here, which makes the row again, by NaN of FP8 and of queries; so of a list of the longer form
    // all that is copied is FP4, and queries at odd addresses are not copied.
    let mut copied = sparse((64, 64), [100, 350], 1, tame);
    copied.operands[0] = (numbers(64 * 65, 1), vec![], 65);
    // Scales that bf16 does not hold; an odd number of stages, entries that are not read by words; several rows a block;
    // and lists of the longer form.
    let cases = [
        sparse((2, 256), [9, 8], 3, |byte| if byte % 2 == 0 { 200 } else { 122 }),
        sparse((2, 192), [20, 31], 3, tame),
        sparse((9, 512), [40, 60], 3, tame),
        sparse((2, 512), [200, 250], 1, tame),
        copied,
    ];
    every_wait_is_needed(&cases, &["sparse_whole_sm90.cu"], 10);
}
