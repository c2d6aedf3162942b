//! The plan: whether a model fits given boards, from the configuration alone, before anything is
//! loaded.

pub mod board;
mod ledger_text;
mod plan_text;
pub mod planner;
pub mod rank;
pub mod request;
pub mod score;
pub mod sequence;
mod strategies;
mod table;
pub mod tensor_parallel;
pub mod workspace;

pub use board::{Architecture, Board, Boards, Placement};
pub use planner::{Plan, plan};
pub use request::{PICTURES, Request, pictures};
pub use strategies::Strategies;
