//! What every operator page needs.

pub(crate) use crate::Dim::{Is, Of};
pub(crate) use crate::{
    Class, Cost, Domain, Elem, Enc, Error, Extents, Form, IndexBound, Operand, Operator, Real,
    Record, Ref, Result, Steps, Sym, io,
};

/// A descriptor check: `BadDescriptor` with `why` unless `ok`.
pub(crate) fn require(op: &'static str, ok: bool, why: &str) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::BadDescriptor { op, why: why.into() }) }
}

/// Multiply-adds of `rows x n x k`, counted as two.
pub(crate) fn matmul_flops(rows: u64, n: u64, k: u64) -> f64 {
    2.0 * rows as f64 * n as f64 * k as f64
}
