//! How much text one token stands for.

use tokenizers::SplitDelimiterBehavior;
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::byte_alphabet::{BYTES, ByteAlphabet};

/// Bytes of the longest token that plain text can become. `None` when the pipeline may drop bytes
/// of a text or let a token stand for more of them than it spells: a text's length says nothing
/// about its tokens then.
pub(super) fn longest_token_bytes(
    pipeline: &tokenizers::Tokenizer,
    alphabet: &ByteAlphabet,
) -> Option<u64> {
    if !keeps_every_byte(pipeline) {
        return None;
    }
    let vocabulary = pipeline.get_vocab(false);
    // Others are of no text: the merges see nothing but the alphabet.
    let lengths = || vocabulary.keys().filter_map(|spelling| alphabet.bytes_of(spelling));
    // A byte without a token of its own vanishes from the text.
    let single = lengths().filter(|bytes| bytes.len() == 1).count();
    lengths().map(|bytes| bytes.len() as u64).max().filter(|_| single == BYTES)
}

/// Whether every byte of a text ends up in exactly one token that spells it.
fn keeps_every_byte(pipeline: &tokenizers::Tokenizer) -> bool {
    let merges = match pipeline.get_model() {
        ModelWrapper::BPE(model) => {
            model.continuing_subword_prefix.is_none() && model.end_of_word_suffix.is_none()
        }
        _ => false,
    };
    let splits = pipeline.get_pre_tokenizer();
    merges
        && pipeline.get_normalizer().is_none_or(is_empty)
        && splits.is_some_and(|splits| drops_nothing(splits) && spells_bytes(splits))
}

fn is_empty(normalizer: &NormalizerWrapper) -> bool {
    matches!(normalizer, NormalizerWrapper::Sequence(list) if list.as_ref().iter().all(is_empty))
}

fn drops_nothing(splits: &PreTokenizerWrapper) -> bool {
    match splits {
        PreTokenizerWrapper::ByteLevel(_) => true,
        PreTokenizerWrapper::Split(split) => split.behavior != SplitDelimiterBehavior::Removed,
        PreTokenizerWrapper::Sequence(list) => list.as_ref().iter().all(drops_nothing),
        _ => false,
    }
}

fn spells_bytes(splits: &PreTokenizerWrapper) -> bool {
    match splits {
        PreTokenizerWrapper::ByteLevel(_) => true,
        PreTokenizerWrapper::Sequence(list) => list.as_ref().iter().any(spells_bytes),
        _ => false,
    }
}
