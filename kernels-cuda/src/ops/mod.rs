//! Kernel rows of every operator: in the folders of their pages those that have tuned ones, the plain row alone of all
//! others.

mod attn;
mod gemm;
mod index;
mod mhc;
mod moe;
mod prelude;

use crate::rows::{Launch, Rows, plain_alone};
use tandem_hal::Row;

/// Rows of an operator, unless it has a file here, which has them.
macro_rules! rows {
    (SparseAttention) => {};
    (F32Linear) => {};
    (Mxfp8Linear) => {};
    (GroupedLinear) => {};
    (Scores) => {};
    (TopK) => {};
    (Select) => {};
    (GateUp) => {};
    (Down) => {};
    (ExpertUp) => {};
    (ExpertDown) => {};
    (MhcMixes) => {};
    ($plain:ident) => {
        impl Rows for tandem_hal::$plain {
            fn rows() -> &'static [Row<Self, Launch<Self>>] {
                plain_alone()
            }
        }
    };
}

macro_rules! rows_of_all {
    ([] $($name:ident)*) => { $(rows!($name);)* };
}
tandem_hal::for_each_operator!([rows_of_all]);
