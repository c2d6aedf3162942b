//! How long steps of a model take, and how long they must: with random weights and contexts nobody
//! has read.

mod step_work;
mod synthetic;

pub use step_work::StepWork;
pub use synthetic::{Step, Synthetic};
