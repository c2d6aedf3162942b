//! Rows of [`MhcMixes`].

use crate::driver::Shape;
use crate::ops::prelude::*;
use tandem_hal::{DeviceInfo, MhcMixes};

impl Rows for MhcMixes {
    fn rows() -> &'static [Row<Self, Launch<Self>>] {
        const CLUSTER: Row<MhcMixes, Launch<MhcMixes>> = Row {
            suits: |d| d.width >= SUITED_WIDTH,
            ..hopper("cluster", "f32-parts", "mhc/mixes_sm90", run, accepts)
        };
        const { &[portable::<Self>(), CLUSTER] }
    }
}

/// Blocks of a cluster: each has a part of the columns, the projection's in shared memory; and their threads.
const PARTS: u64 = 16;
const THREADS: u32 = 288;
/// Columns that parts are multiples of.
const CHUNK: u64 = 8;
/// Rows of the projection of four streams.
const COEFFICIENTS: u64 = 24;
/// Shared memory of a block without its columns, at most, and all that there is.
const ROOM_BYTES: u64 = 16 * 1024;
const SHARED_BYTES: u64 = 227 * 1024;
/// Clusters of sixteen that an H200 runs at a time.
const CLUSTERS: u64 = 7;
/// Tokens of a cluster at a time, of each kernel.
const EACH: [(u64, &str); 3] =
    [(2, "mhc_mixes__cluster_2"), (6, "mhc_mixes__cluster_6"), (10, "mhc_mixes__cluster_10")];
/// Only larger widths were timed.
const SUITED_WIDTH: u64 = 1024;

/// Columns of a part.
fn columns_of(d: &MhcMixes) -> u64 {
    (d.streams * d.width).div_ceil(PARTS * CHUNK) * CHUNK
}

fn shared_bytes(d: &MhcMixes, each: u64) -> u64 {
    ROOM_BYTES + columns_of(d) * (COEFFICIENTS * 4 + each * 2)
}

fn accepts(d: &MhcMixes, _: &DeviceInfo) -> std::result::Result<(), &'static str> {
    if d.streams != 4 {
        return Err("streams are not four");
    }
    let most = EACH.iter().map(|(each, _)| *each).max().unwrap_or(0);
    let fits = d.width <= u64::from(u16::MAX) && shared_bytes(d, most) <= SHARED_BYTES;
    if fits { Ok(()) } else { Err("a part of the projection is larger than shared memory") }
}

fn run(d: &MhcMixes, io: &Arguments<MhcMixes>, on: &Launcher<'_>) -> Result<()> {
    let tokens = on.at(Sym::Tokens);
    // How many are taken together does not show in the results.
    let last = EACH[EACH.len() - 1];
    let (each, kernel) = EACH.into_iter().find(|e| e.0 * CLUSTERS >= tokens).unwrap_or(last);
    let clusters = tokens.div_ceil(each).min(CLUSTERS);
    let shape = Shape {
        grid: [(clusters * PARTS) as u32, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: shared_bytes(d, each) as u32,
        cluster: Some([PARTS as u32, 1, 1]),
        programmatic: true,
    };
    let [streams, projection, base, scale] =
        [io.streams, io.projection, io.base, io.scale].map(View);
    let arguments = [
        streams,
        projection,
        base,
        scale,
        View(io.pre),
        View(io.post),
        View(io.comb),
        U64(d.width),
        U64(d.iterations),
        F32(d.eps.value()),
        F32(d.norm_eps.value()),
        U64(tokens),
        U32(columns_of(d) as u32),
    ];
    on.launch(kernel, &shape, &arguments)
}
