//! Any stream of tokens is a reply, and a finished call has arguments that parse.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_engine::text::reply_from_bytes;

fuzz_target!(|data: &[u8]| {
    for call in reply_from_bytes(data).calls.iter().filter(|c| c.complete) {
        let parsed = serde_json::from_str::<serde_json::Value>(&call.arguments);
        assert!(parsed.is_ok_and(|v| v.is_object()), "{}: {}", call.name, call.arguments);
    }
});
