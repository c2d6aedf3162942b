//! Tuned kernels under many schedules, whole and with one wait or fence left out at a time.

use super::host::{OnHost, leaving_out, sites};
use crate::{
    driver::ViewArgument,
    launcher::Launcher,
    rows::{self, Rows},
};
use tandem_hal::{Extents, Mxfp8Linear, Operator, Result, Sym};

/// Launches of a case: each has another schedule.
const SCHEDULES: usize = 12;

/// A launch's operands as bytes: codes and scales of each, and which one is the output.
struct Case<'a, D: Operator> {
    descriptor: &'a D,
    row: &'a str,
    extents: Extents,
    operands: Vec<(Vec<u8>, Vec<u8>, u64)>,
    output: usize,
}

impl<D: Rows> Case<'_, D> {
    /// The output of one launch.
    fn run(&self) -> Result<Vec<u8>> {
        let mut operands = self.operands.clone();
        let arguments: Vec<ViewArgument> = operands
            .iter_mut()
            .map(|(codes, scales, stride)| ViewArgument {
                codes: codes.as_mut_ptr().expose_provenance() as u64,
                scales: scales.as_mut_ptr().expose_provenance() as u64,
                stride: *stride,
            })
            .collect();
        let row = D::rows().iter().find(|row| row.name == self.row).expect("the row under test");
        let (target, extents) = (&OnHost, &self.extents);
        let on = Launcher { target, extents, workspace: ViewArgument::default() };
        rows::launch(self.descriptor, row, arguments.into_iter(), &on)?;
        Ok(operands.swap_remove(self.output).0)
    }

    /// Whether some schedule gives another output than `whole`, or an error.
    fn is_caught(&self, whole: &[u8]) -> bool {
        (0..SCHEDULES).any(|_| self.run().map_or(true, |output| output != whole))
    }
}

/// Numbers without NaN, from a seed.
fn codes(count: u64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..count)
        .map(|_| next())
        .map(|code| if code & 0x7F == 0x7F { code ^ 8 } else { code })
        .collect()
}

/// `gemm.mxfp8` on its narrow row, with scales from `first` on.
fn narrow(tokens: u64, scale: impl Fn(u64) -> u8) -> Case<'static, Mxfp8Linear> {
    // Two parts of 13 stages, the last in the slot that sums will take; a ragged last tile and a ragged last stage.
    const LINEAR: Mxfp8Linear = Mxfp8Linear { n: 72, k: 3296 };
    let (n, k) = (LINEAR.n, LINEAR.k);
    let scales = |count| (0..count).map(&scale).collect();
    Case {
        descriptor: &LINEAR,
        row: "narrow",
        extents: Extents::of(&[(Sym::Tokens, tokens)]),
        operands: vec![
            (codes(tokens * k, 1), scales(tokens * k / 32), k),
            (codes(n * k, 2), scales(n.div_ceil(32) * k / 32), k),
            (vec![0; (tokens * n * 2) as usize], vec![], n),
        ],
        output: 2,
    }
}

#[test]
fn the_narrow_linear_needs_each_of_its_waits() {
    let near = narrow(9, |i| 120 + (i % 7) as u8);
    // Products of these scales are beyond f32, which the kernel takes another way.
    let far = narrow(9, |i| if i % 2 == 0 { 30 } else { 200 });
    let whole = [near.run().unwrap(), far.run().unwrap()];
    for _ in 0..SCHEDULES {
        assert_eq!([near.run().unwrap(), far.run().unwrap()], whole);
    }
    let all = sites("mxfp8_narrow_sm90.cu");
    assert!(all.len() >= 10, "{all:?}");
    let missed: Vec<&String> = all
        .iter()
        .filter(|site| {
            leaving_out(site, || !near.is_caught(&whole[0]) && !far.is_caught(&whole[1]))
        })
        .collect();
    assert!(missed.is_empty(), "left out without a difference: {missed:?}");
}
