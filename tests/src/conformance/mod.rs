//! Conformance: what every kernel row owes, checked alike for every provider, device, operator and
//! accepting row.
//!
//! [`suite`] makes one trial per row and kind of case; [`check`] runs a case through the
//! [`properties`]; [`stage`] puts operands on a device between guards; [`expect`] asks the card.
//! Nothing here knows an operator but [`operator`], and nothing knows a backend but [`lane`].

pub mod arguments;
pub mod bench;
pub mod case;
pub mod check;
pub mod draws;
pub mod expect;
pub mod kind;
pub mod lane;
pub mod operator;
pub mod outputs;
pub mod pick;
pub mod properties;
pub mod property;
pub mod record;
pub mod stage;
pub mod subject;
pub mod suite;
pub mod summary;
pub mod xfail;
