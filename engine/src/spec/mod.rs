//! Drafts: drawing a block, and deciding what of it stands.

mod draft_sampler;
mod verifier;

pub(crate) use draft_sampler::{DraftSampler, Laws, StagedDraft};
pub(crate) use verifier::Verifier;
