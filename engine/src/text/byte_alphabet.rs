//! The byte-level alphabet: one printable character for each of the 256 byte values.
//!
//! Printable Latin-1 bytes stand for themselves; the other 68 take the characters from U+0100 on,
//! in byte order. Vocabulary entries of a byte-level tokenizer are written in it.

/// Number of byte values.
pub(super) const BYTES: usize = 256;

/// True for the bytes that are written as themselves.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The alphabet in the direction that decoding needs.
#[derive(Clone, Debug)]
pub(super) struct ByteAlphabet {
    /// Byte written by the character with this code point, for code points below 0x144.
    bytes: Vec<Option<u8>>,
}

impl ByteAlphabet {
    /// Builds the table.
    pub(super) fn new() -> Self {
        let mut bytes = vec![None; 2 * BYTES];
        let mut next = BYTES;
        for byte in 0..=u8::MAX {
            if is_printable(byte) {
                bytes[usize::from(byte)] = Some(byte);
            } else {
                bytes[next] = Some(byte);
                next += 1;
            }
        }
        Self { bytes }
    }

    /// The bytes that `spelling` stands for, or `None` when a character is not of the alphabet.
    pub(super) fn bytes_of(&self, spelling: &str) -> Option<Box<[u8]>> {
        spelling
            .chars()
            .map(|character| {
                let code_point = usize::try_from(u32::from(character)).ok()?;
                self.bytes.get(code_point).copied().flatten()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::ByteAlphabet;

    #[test]
    fn every_byte_has_one_character() {
        let alphabet = ByteAlphabet::new();
        let mut seen = [false; 256];
        for byte in alphabet.bytes.iter().flatten() {
            assert!(!std::mem::replace(&mut seen[usize::from(*byte)], true));
        }
        assert!(seen.iter().all(|&byte| byte));
    }

    #[test]
    fn known_characters() {
        let alphabet = ByteAlphabet::new();
        assert_eq!(alphabet.bytes_of("Ġa").as_deref(), Some(b" a".as_slice()));
        assert_eq!(alphabet.bytes_of("ĊĉŃ").as_deref(), Some([0x0A, 0x09, 0xAD].as_slice()));
        assert_eq!(alphabet.bytes_of("｜"), None);
    }
}
