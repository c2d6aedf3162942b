//! The cluster of `mhc.mixes` under many schedules, whole and with one of its waits left out at a time. One cluster has
//! all tokens, so that its slots come round.

use super::host::{OnHost, leaving_out, sites};
use crate::{
    driver::{Argument, Shape, ViewArgument},
    launcher::Target,
};
use tandem_hal::Result;

/// Launches of the case: each has another schedule.
const SCHEDULES: usize = 12;
/// Launches within which a wait that is left out has to matter.
const PATIENCE: usize = 60;
const STREAMS: u64 = 4;
const WIDTH: u64 = 72;
const COEFFICIENTS: u64 = 24;
/// Two at a time, the last one alone.
const TOKENS: u64 = 7;
const PARTS: u32 = 16;
/// Columns of a part, the last ones of which are none.
const COLUMNS: u64 = 24;

/// Numbers of -1 to 1, from a seed.
fn numbers(count: u64, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(next).collect()
}

struct Case {
    streams: Vec<u16>,
    projection: Vec<f32>,
    base: Vec<f32>,
}

impl Case {
    fn new() -> Case {
        let streams = numbers(TOKENS * STREAMS * WIDTH, 1);
        let mut streams: Vec<u16> =
            streams.into_iter().map(|x| (x.to_bits() >> 16) as u16).collect();
        // A token whose squares are beyond f32, so that it is made again in f64.
        streams[(3 * STREAMS * WIDTH) as usize..][..2].fill(0x7E80);
        let projection = numbers(COEFFICIENTS * STREAMS * WIDTH, 2);
        Case { streams, projection, base: numbers(COEFFICIENTS, 3) }
    }

    /// All that one launch makes.
    fn run(&self) -> Result<Vec<u32>> {
        let mut made = [STREAMS, STREAMS, STREAMS * STREAMS]
            .map(|each| vec![f32::NAN; (TOKENS * each) as usize]);
        let view = |codes: u64, stride| {
            Argument::View(ViewArgument { codes, stride, ..Default::default() })
        };
        let at = |data: &[f32]| data.as_ptr().expose_provenance() as u64;
        let [pre, post, comb] = &mut made;
        let to = |data: &mut Vec<f32>| view(data.as_mut_ptr().expose_provenance() as u64, STREAMS);
        let arguments = [
            view(self.streams.as_ptr().expose_provenance() as u64, WIDTH),
            view(at(&self.projection), STREAMS * WIDTH),
            view(at(&self.base), COEFFICIENTS),
            view(at(&[0.5, 0.25, 0.75]), 3),
            to(pre),
            to(post),
            to(comb),
            Argument::U64(WIDTH),
            Argument::U64(20),
            Argument::F32(1e-6),
            Argument::F32(1e-20),
            Argument::U64(TOKENS),
            Argument::U32(COLUMNS as u32),
        ];
        let shape = Shape {
            shared_bytes: 16 * 1024 + (COLUMNS * (COEFFICIENTS * 4 + 2 * 2)) as u32,
            cluster: Some([PARTS, 1, 1]),
            ..Shape::flat(PARTS, 288)
        };
        OnHost.launch("mhc_mixes__cluster_2", &shape, &arguments)?;
        Ok(made.into_iter().flatten().map(f32::to_bits).collect())
    }
}

#[test]
fn the_cluster_of_mixes_needs_each_of_its_waits() {
    let case = Case::new();
    let whole = case.run().unwrap();
    assert!(whole.iter().all(|bits| !f32::from_bits(*bits).is_nan()));
    for _ in 0..SCHEDULES {
        assert_eq!(case.run().unwrap(), whole);
    }
    let all = sites("mixes_sm90.cu");
    assert!(all.len() >= 7, "{all:?}");
    let is_caught = || (0..PATIENCE).any(|_| case.run().map_or(true, |made| made != whole));
    let missed: Vec<&String> = all.iter().filter(|site| !leaving_out(site, is_caught)).collect();
    assert!(missed.is_empty(), "left out without a difference: {missed:?}");
}
