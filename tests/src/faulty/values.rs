//! Faults in what is computed.

use super::slots::{
    Beyond, Run, Scratch, input, output, reals, rows, touch, with_bytes, with_ints, with_reals,
};
use tandem_hal::{Enc, Op, Result};
use tandem_reference::Slots;

fn bf16_at(bytes: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])
}

pub(super) fn element_wrong(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    touch(op, s, "y", 0x40);
    Ok(())
}

pub(super) fn scale_off_by_one(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    if let Some(scale) = output(op, s, "y").bytes_mut().1.first_mut() {
        *scale = scale.wrapping_add(1);
    }
    Ok(())
}

pub(super) fn truncation(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    let sums: Vec<Vec<f32>> = {
        let (routed, shared) = (input(op, s, "routed"), input(op, s, "shared"));
        let row = |r| routed.row(r).iter().zip(shared.row(r).iter()).map(|(a, b)| a + b).collect();
        (0..routed.rows()).map(row).collect()
    };
    rows(output(op, s, "y"), |r, bytes| {
        for (to, sum) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(&sums[r]) {
            *to = ((sum.to_bits() >> 16) as u16).to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn tie_upward(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let cols = input(op, s, "scores").cols().max(1);
    with_bytes(op, s, "scores", run, |codes, _| {
        for (i, word) in codes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let x = f32::from_le_bytes(*word);
            // So little that it decides between equals only.
            *word = (x + x.abs().max(1e-30) * 1e-6 * (i % cols) as f32).to_le_bytes();
        }
    })
}

pub(super) fn mask_off_by_one(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "visible", run, |n| n.saturating_add(1))
}

pub(super) fn sink_scaled(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_reals(op, s, "sink", run, |x| x * 0.1)
}

pub(super) fn second_list_ignored(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "selected_at", run, |_| -1)
}

pub(super) fn bias_in_weight(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    let bias = input(op, s, "bias").row(0).into_owned();
    let chosen: Vec<Vec<i32>> = {
        let experts = output(op, s, "expert").read();
        (0..experts.rows()).map(|r| experts.ints(r)).collect()
    };
    rows(output(op, s, "weight"), |r, bytes| {
        for (word, expert) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&chosen[r]) {
            let more = usize::try_from(*expert).ok().and_then(|e| bias.get(e)).unwrap_or(&0.0);
            *word = (f32::from_le_bytes(*word) + more).to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn factor_twice(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    rows(output(op, s, "weight"), |_, bytes| reals(Enc::F32, bytes, |x| x * 1.5));
    Ok(())
}

pub(super) fn expert_shifted(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "expert", run, |e| if e > 0 { e - 1 } else { e })
}

pub(super) fn position_off_by_one(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "position", run, |p| if p < 0 { p } else { p.saturating_add(1) })
}

pub(super) fn store_off_by_one(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "at", run, |at| if at < 0 { at } else { at.saturating_add(1) })
}

pub(super) fn hole_is_page_zero(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "table", run, |page| page.max(0))
}

pub(super) fn comb_transposed(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let n = input(op, s, "comb").cols();
    with_bytes(op, s, "comb", run, |codes, _| {
        for matrix in codes.as_chunks_mut::<4>().0.chunks_mut(n * n) {
            let from = matrix.to_vec();
            for (i, word) in matrix.iter_mut().enumerate() {
                *word = from[i % n * n + i / n];
            }
        }
    })
}

pub(super) fn mean_is_sum(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_reals(op, s, "streams", run, |x| x * 4.0)
}

pub(super) fn mask_ignored(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "masked", run, |_| 0)
}

pub(super) fn none_is_row_zero(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "row", run, |row| row.max(0))
}

pub(super) fn one_draft_more(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    rows(output(op, s, "accepted"), |_, bytes| {
        for word in bytes.as_chunks_mut::<4>().0 {
            *word = (i32::from_le_bytes(*word) + 1).to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn temperature_ignored(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_reals(op, s, "temperature", run, |_| 1.0)
}

pub(super) fn query_scaled(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_reals(op, s, "q", run, |x| x * 2.0)
}

pub(super) fn position_major(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let Op::Unfold(unfold) = op else { return run(s) };
    let patches = (unfold.side * unfold.side) as usize;
    run(s)?;
    rows(output(op, s, "y"), |_, bytes| {
        let from: Vec<u16> = (0..bytes.len() / 2).map(|i| bf16_at(bytes, i)).collect();
        let width = from.len() / patches;
        for (i, to) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *to = from[i % width * patches + i / width].to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn rank_lost(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    // As if the ranks after the first had posted nothing.
    let own: Vec<Vec<f32>> = {
        let x = input(op, s, "x");
        (0..x.rows()).map(|r| x.row(r).into_owned()).collect()
    };
    run(s)?;
    rows(output(op, s, "y"), |r, bytes| {
        for (word, x) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&own[r]) {
            *word = x.to_le_bytes();
        }
    });
    Ok(())
}
