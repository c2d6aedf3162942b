//! The streams of one token.

use crate::Tensor;

/// The streams of token `t` side by side, stream 0 first.
pub(super) fn side_by_side(tensor: &Tensor<'_>, streams: usize, t: usize) -> Vec<f32> {
    let mut flat = Vec::with_capacity(streams * tensor.cols());
    for s in 0..streams {
        flat.extend_from_slice(&tensor.row(t * streams + s));
    }
    flat
}
