//! Operators that have no plain kernel yet: a plan of one says so, or takes a backend's own row or its decomposition.

use crate::{Portable, PortableRow};

macro_rules! unwritten {
    ($($name:ident)*) => {
        $(impl Portable for tandem_hal::$name {
            const ROW: Option<PortableRow<Self>> = None;
        })*
    };
}

unwritten! {
    Select MlaExpanded MlaAbsorbed
}
