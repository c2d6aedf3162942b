//! Rows of [`SparseAttention`].

use crate::driver::Shape;
use crate::ops::prelude::*;
use tandem_hal::{Cache, DeviceInfo, Form, SparseAttention};
use tandem_portable::ops::kv::entry;

impl Rows for SparseAttention {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const WHOLE: Row<SparseAttention, Launch<SparseAttention>> = Row {
            suits: |d| d.heads >= SUITED_HEADS,
            ..hopper("whole", "f32-whole", "attn/sparse_whole_sm90", run_whole, accepts_whole)
        };
        const { &[portable::<Self>(), WHOLE] }
    }
}

/// Threads of a block, heads that it takes at a time, and slots of a team's ring, as the kernel's source has them.
const THREADS: u32 = 512;
const HEADS: u64 = 64;
const SLOTS: u64 = 2;
/// Lists that kernels take, and the dims.
const SHORT: u64 = 128;
const LONG: u64 = 640;
const MOST_DIMS: u64 = 512;
/// Only as many or more were timed.
const SUITED_HEADS: u64 = 8;

fn accepts_whole(d: &SparseAttention, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.window_count + d.selected_count > LONG {
        return Err("more entries than a block holds scores of");
    }
    if d.head_dim > MOST_DIMS || !d.head_dim.is_multiple_of(16) {
        return Err("heads are not of multiples of 16 dims up to 512");
    }
    if d.heads > 1 << 16 {
        return Err("more heads than a launch counts");
    }
    d.selected.iter().chain([&d.window]).try_for_each(known)
}

/// Whether entries are numbers of bf16.
fn known(cache: &Cache) -> std::result::Result<(), &'static str> {
    match cache.record.form {
        Form::Mxfp8 | Form::Nvfp4 | Form::Mxfp4 | Form::Fp8Rope | Form::Bf16 => Ok(()),
        _ => Err("entries are not numbers of bf16"),
    }
}

/// Shared memory of a block whose lists have up to `entries`.
fn shared_bytes(entries: u64) -> u64 {
    let slots = SLOTS * (entries * 128 + 2 * HEADS * 128);
    // Scales, addresses, scores, and bits of two rows; then what is told of heads and of warps.
    let of_entries = entries * (32 + 8 + 4) + 2 * entries / 8;
    let barriers = 2 * 2 * SLOTS * 8;
    slots + of_entries + 2 * 2 * HEADS * 4 + barriers + 64
}

fn run_whole(
    d: &SparseAttention,
    io: &Arguments<SparseAttention>,
    on: &Launcher<'_>,
) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    let items = tokens.saturating_mul(d.heads.div_ceil(HEADS));
    if items > i32::MAX as u64 {
        return Err(refused::<SparseAttention>("more rows than a launch counts"));
    }
    let count = d.window_count + d.selected_count;
    let (kernel, entries) = if count <= SHORT {
        ("attn_sparse__whole_128", SHORT)
    } else {
        ("attn_sparse__whole_640", LONG)
    };
    let shape = Shape {
        shared_bytes: shared_bytes(entries) as u32,
        programmatic: true,
        ..Shape::flat(items.min(on.multiprocessors()?) as u32, THREADS)
    };
    let (window, _) = entry(&d.window, on.extents)?;
    // Without one, its list has no entries.
    let (selected, _) = entry(d.selected.as_ref().unwrap_or(&d.window), on.extents)?;
    let views = [io.q, io.window, io.window_at, io.selected, io.selected_at, io.sink, io.y, io.lse];
    let sizes = [d.heads, d.head_dim, d.window_count, d.selected_count].map(|v| U32(v as u32));
    let views = views.map(View);
    let rest = [F32(d.scale.value()), U32(tokens as u32)];
    on.launch(kernel, &shape, &[&views[..], &[window, selected], &sizes, &rest].concat())
}
