//! Bounds of histograms.

/// Of waits that a user notices: 1 ms to 10 min.
pub(super) const WAITS_SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    180.0, 600.0,
];

/// Of single tokens and steps: 0.1 ms to 5 s.
pub(super) const TOKEN_SECONDS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 5.0,
];

/// Of rows of a step: 1 to 8,192.
pub(super) const ROWS: [f64; 14] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0];

/// Of drafts that a request verifies in a step.
pub(super) const DRAFTS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 16.0];
