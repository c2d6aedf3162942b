//! Tokenizer and vocabulary map against the demo tokenizer and, when it was fetched, the production one.

mod text_support;

use sha2::{Digest, Sha256};
use tandem_engine::text::{ControlToken, TextError, Tokenizer, VocabularyMap};
use text_support::{demo_tokenizer, production_tokenizer};

#[test]
fn demo_tokenizer_has_every_control_token() {
    let tokenizer = demo_tokenizer();
    assert_eq!(tokenizer.vocabulary_size(), 2048);
    for token in ControlToken::ALL {
        let id = tokenizer.control_token(token).unwrap();
        assert_eq!(tokenizer.control_of(id), Some(token));
        assert_eq!(tokenizer.token_bytes(id).unwrap(), token.spelling().as_bytes());
    }
}

#[test]
fn plain_text_never_holds_a_control_token_and_decodes_to_itself() {
    let tokenizer = demo_tokenizer();
    for text in [
        "",
        "Hello, world!",
        "a<｜Assistant｜></think>b<｜DSML｜ calls>",
        "<｜begin▁of▁sentence｜><｜end▁of▁sentence｜><｜▁pad▁｜>",
        "don't STOP\r\n\t x  = 1234567",
        "你好，世界 Привет 🙂👍 こんにちは e\u{301}",
        "\0\u{FFFD}\u{10FFFF}",
    ] {
        let ids = tokenizer.encode(text).unwrap();
        assert!(ids.iter().all(|&id| !tokenizer.is_added(id)), "{text:?}");
        assert!(tokenizer.least_tokens(text) <= ids.len() as u64, "{text:?}");
        assert_eq!(tokenizer.decode(&ids).unwrap(), text.as_bytes());
    }
}

#[test]
fn errors_name_the_thing() {
    let tokenizer = demo_tokenizer();
    assert!(matches!(
        tokenizer.token_bytes(2048),
        Err(TextError::UnknownTokenId { id: 2048, size: 2048 })
    ));
    assert!(matches!(
        tokenizer.check_vocabulary_size(2047),
        Err(TextError::VocabularySize { found: 2048, expected: 2047 })
    ));
    tokenizer.check_vocabulary_size(2048).unwrap();
    assert!(matches!(Tokenizer::from_bytes(b"{}"), Err(TextError::TokenizerFormat { .. })));
    assert!(matches!(Tokenizer::from_bytes(b"\xFF"), Err(TextError::TokenizerFormat { .. })));
    let missing = Tokenizer::from_file("no/such/tokenizer.json").unwrap_err().to_string();
    assert!(missing.contains("no/such/tokenizer.json"), "{missing}");
}

#[test]
fn tokenizer_without_a_control_token_says_which() {
    let json = String::from_utf8(text_support::DEMO_TOKENIZER.to_vec()).unwrap();
    let renamed = json.replace("<｜latest_reminder｜>", "<｜other｜>");
    let tokenizer = Tokenizer::from_bytes(renamed.as_bytes()).unwrap();
    let error = tokenizer.control_token(ControlToken::LatestReminder).unwrap_err();
    assert!(error.to_string().contains("<｜latest_reminder｜>"), "{error}");
}

#[test]
fn entries_outside_the_byte_alphabet_are_refused() {
    let json = String::from_utf8(text_support::DEMO_TOKENIZER.to_vec()).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    value["model"]["vocab"].as_object_mut().unwrap().insert("▁word".into(), 2100.into());
    let error = Tokenizer::from_bytes(value.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, TextError::NotByteLevel { id: 2100, .. }), "{error}");
}

#[test]
fn long_runs_are_split_like_short_ones() {
    let tokenizer = demo_tokenizer();
    for unit in [" ", "\n", "a", "!", "1", "é", "\t\u{3000}"] {
        let text = format!("x{}y", unit.repeat(60_000));
        let ids = tokenizer.encode(&text).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), text.as_bytes());
        assert!(tokenizer.least_tokens(&text) <= ids.len() as u64, "{unit:?}");
        let tail = tokenizer.encode(&format!("{text} the end")).unwrap();
        let end = tokenizer.encode(" the end").unwrap();
        assert!(tail.ends_with(&end), "{unit:?}");
    }
}

/// A text of nothing but the longest token has exactly the fewest tokens that its length allows.
#[test]
fn a_texts_length_bounds_its_tokens() {
    for tokenizer in [Some(demo_tokenizer()), production_tokenizer()].into_iter().flatten() {
        let ids = 0..tokenizer.vocabulary_size() as u32;
        let plain = ids.filter(|&id| !tokenizer.is_added(id));
        let bytes = |id| tokenizer.token_bytes(id).unwrap_or_default();
        let longest = plain.max_by_key(|&id| bytes(id).len()).unwrap();
        let text = std::str::from_utf8(bytes(longest)).unwrap();
        assert_eq!(tokenizer.encode(text).unwrap(), [longest]);
        assert_eq!(tokenizer.least_tokens(text), 1);
        assert_eq!(tokenizer.least_tokens(&format!("{text}a")), 2);
        assert_eq!(tokenizer.least_tokens(""), 0);
    }
}

#[test]
fn where_text_may_be_shortened_its_length_says_nothing() {
    let json: serde_json::Value = serde_json::from_slice(text_support::DEMO_TOKENIZER).unwrap();
    let least = |value: &serde_json::Value| {
        Tokenizer::from_bytes(value.to_string().as_bytes()).unwrap().least_tokens(&"a".repeat(9999))
    };
    assert!(least(&json) > 0);
    let mut empty = json.clone();
    empty["normalizer"] = serde_json::json!({ "type": "Sequence", "normalizers": [] });
    assert_eq!(least(&empty), least(&json));
    let mut normalised = json.clone();
    normalised["normalizer"] = serde_json::json!({ "type": "NFC" });
    assert_eq!(least(&normalised), 0);
    let mut removed = json.clone();
    removed["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed".into();
    assert_eq!(least(&removed), 0);
    let mut unspelled = json.clone();
    unspelled["pre_tokenizer"]["pretokenizers"].as_array_mut().unwrap().pop();
    assert_eq!(least(&unspelled), 0);
    let mut holed = json;
    let vocabulary = holed["model"]["vocab"].as_object_mut().unwrap();
    // No merge makes use of it.
    assert!(vocabulary.remove("ÿ").is_some());
    assert_eq!(least(&holed), 0);
}

#[test]
fn demo_vocabulary_compresses_to_the_configured_classes() {
    let map = VocabularyMap::new(demo_tokenizer(), 1790).unwrap();
    assert_eq!(map.ids().len(), 2048);
    assert_eq!(map.classes(), 1790);
    assert_eq!(map.ids()[..3], [0, 1, 2]);
    assert_eq!(map.ids().iter().max(), Some(&1789));
    assert!(matches!(
        VocabularyMap::new(demo_tokenizer(), 1791),
        Err(TextError::VocabularyClasses { found: 1790, expected: 1791 })
    ));
}

#[test]
fn production_vocabulary_compresses_to_the_published_map() {
    let Some(tokenizer) = production_tokenizer() else { return };
    let map = VocabularyMap::new(tokenizer, 99_092).unwrap();
    let ids = map.ids();
    for (id, class) in [(2, 2), (15, 15), (128_799, 98_611), (128_803, 98_615), (129_264, 99_076)] {
        assert_eq!(ids[id], class);
    }
    assert_eq!(ids[129_279], 99_091);
    let digest: Sha256 =
        ids.iter().fold(Sha256::new(), |sha, id| sha.chain_update(id.to_le_bytes()));
    assert_eq!(
        format!("{:x}", digest.finalize()),
        "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"
    );
}

#[test]
fn production_ids_of_plain_text() {
    let Some(tokenizer) = production_tokenizer() else { return };
    assert_eq!(tokenizer.vocabulary_size(), 129_280);
    let cases: &[(&str, &[u32])] = &[
        ("Hello, world!", &[19923, 14, 2058, 3]),
        ("  leading", &[223, 6646]),
        ("1234567", &[6895, 18009, 25]),
        ("3.14159", &[21, 16, 9926, 3318]),
        ("你好，世界", &[30594, 303, 3427]),
        ("Привет", &[24797, 8919]),
        ("🙂👍", &[80300, 227, 92526]),
        ("a\n\n\nb", &[67, 6328, 68]),
        ("don't STOP", &[20385, 1664, 125_680]),
        ("\t\tx = 1\r\n", &[200, 51669, 438, 223, 19, 204, 201]),
        ("こんにちは", &[4549, 7245, 2298, 12457, 2841]),
    ];
    for (text, ids) in cases {
        assert_eq!(tokenizer.encode(text).unwrap(), *ids, "{text:?}");
    }
    assert_eq!(tokenizer.control_token(ControlToken::ThinkOpen).unwrap(), 128_821);
    assert_eq!(tokenizer.control_token(ControlToken::ThinkClose).unwrap(), 128_822);
    assert_eq!(tokenizer.control_token(ControlToken::Dsml).unwrap(), 128_825);
    assert_eq!(tokenizer.control_token(ControlToken::Image).unwrap(), 129_264);
}
