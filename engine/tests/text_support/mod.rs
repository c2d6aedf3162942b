//! What the text tests share: the tokenizers.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::Path;

use tandem_engine::text::Tokenizer;

/// The tokenizer.json of the demo checkpoint.
pub const DEMO_TOKENIZER: &[u8] = include_bytes!("../../cli/demo/tokenizer.json");

/// Where `cargo xtask fetch tokenizer` puts the production tokenizer.
const PRODUCTION_PATH: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../target/fetched/tokenizer/tokenizer.json");

/// The demo tokenizer: 2048 ids, every control token.
pub fn demo_tokenizer() -> Tokenizer {
    Tokenizer::from_bytes(DEMO_TOKENIZER).expect("the demo tokenizer is part of the repository")
}

/// The production tokenizer, or `None` after saying why the test is skipped.
pub fn production_tokenizer() -> Option<Tokenizer> {
    if !Path::new(PRODUCTION_PATH).exists() {
        println!("SKIPPED: no {PRODUCTION_PATH}; run `cargo xtask fetch tokenizer`");
        return None;
    }
    Some(Tokenizer::from_file(PRODUCTION_PATH).expect("the fetched tokenizer loads"))
}
