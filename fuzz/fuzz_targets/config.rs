//! Any bytes are a configuration or one line saying why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_engine::model::v41::Config;

fuzz_target!(|data: &[u8]| {
    if let Err(error) = Config::from_json(data) {
        assert!(!error.to_string().contains('\n'), "one line: {error}");
    }
});
