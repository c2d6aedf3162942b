//! Any bytes are a safetensors file or one line saying why not, and every tensor lies inside.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_engine::weights::{ReadAt, header};

/// The fuzzer's bytes as a file.
struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn length_bytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let end = usize::try_from(offset).ok().and_then(|o| o.checked_add(into.len()));
        let bytes = end.and_then(|end| self.0.get(end - into.len()..end));
        into.copy_from_slice(bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let file = Bytes(data.to_vec());
    match header::read("fuzz", &file) {
        Ok(entries) => {
            for entry in entries {
                let end = entry.offset + entry.length_bytes;
                assert!(end <= data.len() as u64, "{} ends outside", entry.name);
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
    }
});
