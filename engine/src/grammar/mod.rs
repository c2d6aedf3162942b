//! Answers held to a form: which tokens may come next.
//!
//! A [`ReplyForm`] is compiled once per request into a [`Grammar`]; every reply follows it with a
//! [`Constraint`] of its own. The engine asks for the tokens allowed at each place of a step, those
//! after drafts included, and the sampler leaves the others no probability. So drafts change the law
//! of an answer no more than they do without a form.

mod calls;
mod constraint;
mod error;
mod form;
mod grammars;

pub use calls::{CalledTool, Calls};
pub use constraint::Constraint;
pub use error::GrammarError;
pub use form::Form;
pub use grammars::{Grammar, Grammars, ReplyForm};
