//! Faults in how a launch behaves: what it writes, what it depends on, what it lets through.

use super::slots::{Beyond, Run, Scratch, input, output, place, reals, rows, touch, with_ints};
use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use tandem_hal::{Enc, Op, Result, Slot};
use tandem_reference::{Slots, Tensor};

pub(super) fn last_row_unwritten(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let y = output(op, s, "y");
    let last = y.split_rows().pop().map(|(_, bytes)| bytes.to_vec());
    run(s)?;
    if let (Some(last), Some((_, bytes))) = (last, output(op, s, "y").split_rows().pop()) {
        bytes.copy_from_slice(&last);
    }
    Ok(())
}

pub(super) fn guard_overrun(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    beyond: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    beyond.spills.push((place(op, "y"), 0));
    run(s)
}

pub(super) fn stale_workspace(
    op: &Op,
    s: &mut Slots<'_>,
    scratch: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    touch(op, s, "y", scratch.first().copied().unwrap_or(0) & 1);
    Ok(())
}

pub(super) fn unrepeatable(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
    run(s)?;
    touch(op, s, "y", (LAUNCHES.fetch_add(1, SeqCst) & 1) as u8);
    Ok(())
}

pub(super) fn batch_order(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    if input(op, s, "x").shape()[0] > 1 {
        touch(op, s, "y", 1);
    }
    Ok(())
}

pub(super) fn stride_ignored(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let at = place(op, "x");
    let x = input(op, s, "x").clone();
    if !x.is_empty() {
        // The bytes from the first element on, as if rows touched.
        s[at] = Slot::In(Tensor::dense(Enc::BF16, x.shape(), x.bytes().0, &[]));
    }
    run(s)
}

pub(super) fn offset_32_bits(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let Op::Fetch(fetch) = op else { return run(s) };
    let bytes = fetch.cache.record.bytes();
    with_ints(op, s, "at", run, |at| match u64::try_from(at) {
        Ok(at) => ((at * bytes % (1 << 32)) / bytes) as i32,
        Err(_) => at,
    })
}

pub(super) fn stray_clamped(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    let last = input(op, s, "x").shape()[0] as i32 - 1;
    with_ints(op, s, "at", run, |at| at.min(last))
}

pub(super) fn stray_is_zero(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    with_ints(op, s, "window_at", run, |at| if at < -1 { 0 } else { at })
}

pub(super) fn nan_swallowed(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    rows(output(op, s, "y"), |_, bytes| {
        reals(Enc::BF16, bytes, |x| if x.is_nan() { 0.0 } else { x });
    });
    Ok(())
}

pub(super) fn nan_spread(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    let any = {
        let y = output(op, s, "y").read();
        (0..y.rows()).any(|r| y.row(r).iter().any(|x| x.is_nan()))
    };
    if any {
        rows(output(op, s, "y"), |_, bytes| reals(Enc::BF16, &mut bytes[..2], |_| f32::NAN));
    }
    Ok(())
}

pub(super) fn scratch_shared(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    static WITHIN: AtomicUsize = AtomicUsize::new(0);
    let others = WITHIN.fetch_add(1, SeqCst);
    // Long enough for a launch on another stream to come in.
    std::thread::sleep(Duration::from_millis(5));
    let result = run(s);
    if others > 0 {
        touch(op, s, "y", 1);
    }
    WITHIN.fetch_sub(1, SeqCst);
    result
}

pub(super) fn fused_rounds_less(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    touch(op, s, "y", 1);
    Ok(())
}

pub(super) fn roundings_lean(
    op: &Op,
    s: &mut Slots<'_>,
    _: Scratch<'_>,
    _: Beyond<'_>,
    run: Run<'_, '_>,
) -> Result<()> {
    run(s)?;
    rows(output(op, s, "y"), |_, bytes| {
        reals(Enc::F32, bytes, |x| {
            let one_less = f32::from_bits(x.to_bits().wrapping_sub(1));
            if x.is_finite() && x != 0.0 { one_less } else { x }
        });
    });
    Ok(())
}
