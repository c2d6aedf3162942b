//! Faults in how a launch behaves: what it writes, what it depends on, what it lets through.

use super::launch::{Launch, reals, rows};
use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use tandem_hal::{Enc, Op, Result, Slot};
use tandem_reference::Tensor;

pub(super) fn last_row_unwritten(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let y = launch.output("y");
    let last = y.split_rows().pop().map(|(_, bytes)| bytes.to_vec());
    launch.run()?;
    if let (Some(last), Some((_, bytes))) = (last, launch.output("y").split_rows().pop()) {
        bytes.copy_from_slice(&last);
    }
    Ok(())
}

pub(super) fn guard_overrun(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let y = launch.place("y");
    launch.beyond.spills.push((y, 0));
    launch.run()
}

pub(super) fn stale_workspace(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    let stale = launch.scratch.first().copied().unwrap_or(0);
    launch.touch("y", stale & 1);
    Ok(())
}

pub(super) fn unrepeatable(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
    launch.run()?;
    launch.touch("y", (LAUNCHES.fetch_add(1, SeqCst) & 1) as u8);
    Ok(())
}

pub(super) fn batch_order(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    if launch.input("x").shape()[0] > 1 {
        launch.touch("y", 1);
    }
    Ok(())
}

pub(super) fn stride_ignored(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let at = launch.place("x");
    let x = launch.input("x").clone();
    if !x.is_empty() {
        // The bytes from the first element on, as if rows touched.
        launch.slots[at] = Slot::In(Tensor::dense(Enc::BF16, x.shape(), x.bytes().0, &[]));
    }
    launch.run()
}

pub(super) fn offset_32_bits(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let Op::Fetch(fetch) = launch.op else { return launch.run() };
    let bytes = fetch.cache.record.bytes();
    launch.with_ints("at", |at| match u64::try_from(at) {
        Ok(at) => ((at * bytes % (1 << 32)) / bytes) as i32,
        Err(_) => at,
    })
}

pub(super) fn stray_clamped(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let last = launch.input("x").shape()[0] as i32 - 1;
    launch.with_ints("at", |at| at.min(last))
}

pub(super) fn stray_is_zero(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("window_at", |at| if at < -1 { 0 } else { at })
}

pub(super) fn nan_swallowed(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    rows(launch.output("y"), |_, bytes| {
        reals(Enc::BF16, bytes, |x| if x.is_nan() { 0.0 } else { x });
    });
    Ok(())
}

pub(super) fn nan_spread(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    let any = {
        let y = launch.output("y").read();
        (0..y.rows()).any(|r| y.row(r).iter().any(|x| x.is_nan()))
    };
    if any {
        rows(launch.output("y"), |_, bytes| reals(Enc::BF16, &mut bytes[..2], |_| f32::NAN));
    }
    Ok(())
}

pub(super) fn scratch_shared(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    static WITHIN: AtomicUsize = AtomicUsize::new(0);
    let others = WITHIN.fetch_add(1, SeqCst);
    // Long enough for a launch on another stream to come in.
    std::thread::sleep(Duration::from_millis(5));
    let result = launch.run();
    if others > 0 {
        launch.touch("y", 1);
    }
    WITHIN.fetch_sub(1, SeqCst);
    result
}

pub(super) fn fused_rounds_less(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    launch.touch("y", 1);
    Ok(())
}

pub(super) fn roundings_lean(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    rows(launch.output("y"), |_, bytes| {
        reals(Enc::F32, bytes, |x| {
            let one_less = f32::from_bits(x.to_bits().wrapping_sub(1));
            if x.is_finite() && x != 0.0 { one_less } else { x }
        });
    });
    Ok(())
}
