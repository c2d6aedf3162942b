//! Drafts: who proposes a block, drawing one, and deciding what of it stands.

mod draft_sampler;
mod dspark;
mod ngram;
mod verifier;

pub(crate) use draft_sampler::{DraftSampler, Laws, StagedDraft};
pub(crate) use dspark::Dspark;
pub(crate) use ngram::Ngram;
pub(crate) use verifier::Verifier;
