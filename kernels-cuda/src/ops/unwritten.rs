//! Operators that have no kernel here yet: a plan of one says so, or takes its decomposition.

use crate::rows::{Launch, Rows};
use tandem_hal::Row;

macro_rules! unwritten {
    ($($name:ident)*) => {
        $(impl Rows for tandem_hal::$name {
            fn rows() -> &'static [Row<Self, Launch<Self>>] {
                &[]
            }
        })*
    };
}

unwritten! {
    MlaExpanded MlaAbsorbed
}
