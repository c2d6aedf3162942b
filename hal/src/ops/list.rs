//! The one list of operators, and the closed enum made from it.

use crate::{Line, Operator, ops};

/// `for_each_operator!([callback], arguments)` calls `callback! { [arguments] Operator … }` with the
/// descriptor type of every operator.
/// Adding an operator means adding a word here.
#[macro_export]
macro_rules! for_each_operator {
    ([$($callback:tt)+] $(, $argument:tt)*) => {
        $($callback)+! { [$($argument)*]
            Cast Decode Requant
            Mxfp8Linear Mxfp4Linear Bf16Linear F32Linear GroupedLinear
            RmsNorm RmsNormCast Rotate RmsNormRotate
            MhcStart MhcMixes MhcCollapse MhcExpand MhcMean MhcCollapseNorm
            Store Fetch Compress Locate NormRotateStore
            Scores TopK Candidates Select
            SparseAttention MergeAttention MlaExpanded MlaAbsorbed
            Route GateUp Swiglu Down Combine AddShared ExpertUp ExpertDown
            RouteGrouped RouteHash CombineScaled
            EngramHash EngramLookup EngramGate
            Markov Confidence Verify
            Embed GatherRows PlaceRows
            Penalise MaskLogits Filter Draw LogProbs
            RotateHalves DenseAttention GatedSilu Gelu AddRows Unfold
            AllReduce AllGather
        }
    };
}

macro_rules! make_op {
    ([] $($name:ident)*) => {
        /// An operator as data: what devices take.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op {
            $(
                #[doc = concat!("[`", stringify!($name), "`](crate::", stringify!($name), ").")]
                $name(ops::$name)
            ),*
        }

        $(impl From<ops::$name> for Op {
            fn from(descriptor: ops::$name) -> Op {
                Op::$name(descriptor)
            }
        })*

        impl Op {
            /// Identifiers in order of the list.
            pub const IDS: &'static [&'static str] = &[$(<ops::$name as Operator>::ID),*];

            /// `family.name`.
            pub fn id(&self) -> &'static str {
                match self {
                    $(Op::$name(_) => <ops::$name as Operator>::ID),*
                }
            }

            /// The operator and descriptor that `line` spells.
            ///
            /// # Errors
            /// Why it spells none.
            pub fn parse_line(line: &str) -> std::result::Result<Op, String> {
                let line = line.trim();
                let (id, fields) = line.split_at(line.find('{').unwrap_or(line.len()));
                $(if id == <ops::$name as Operator>::ID {
                    return <ops::$name as Line>::parse(fields).map(Op::$name);
                })*
                Err(format!("there is no operator '{id}'"))
            }

            /// The line that [`Op::parse_line`] reads back.
            pub fn line(&self) -> String {
                match self {
                    $(Op::$name(d) => format!("{}{}", <ops::$name as Operator>::ID, d.line())),*
                }
            }
        }
    };
}
for_each_operator!([make_op]);

/// `dispatch!(op, d => expression)`: the expression is compiled once per operator, with `d` bound
/// to a reference to its descriptor.
#[macro_export]
macro_rules! dispatch {
    ($op:expr, $d:ident => $e:expr) => {
        $crate::for_each_operator!([$crate::dispatch_arms], ($op), $d, ($e))
    };
}

/// Part of [`dispatch!`](crate::dispatch).
#[doc(hidden)]
#[macro_export]
macro_rules! dispatch_arms {
    ([($op:expr) $d:ident ($e:expr)] $($name:ident)*) => {
        match $op { $($crate::Op::$name($d) => $e),* }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_name_a_family() {
        let mut ids = Op::IDS.to_vec();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Op::IDS.len());
        assert!(ids.iter().all(|id| id.split('.').count() == 2));
    }
}
