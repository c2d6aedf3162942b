//! Sections of 64-bit little-endian object files.

/// Every section's name and bytes.
pub fn sections(file: &[u8]) -> Vec<(&str, &[u8])> {
    let number = |at: usize, bytes: usize| {
        let field = file.get(at..at + bytes).expect("a header within the file");
        field.iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte))
    };
    let (table, step, count) = (number(0x28, 8), number(0x3A, 2), number(0x3C, 2));
    let header = |index: usize| {
        let at = table + index * step;
        // A section that takes no room in the file is of type 8.
        let size = if number(at + 4, 4) == 8 { 0 } else { number(at + 32, 8) };
        let from = number(at + 24, 8);
        (number(at, 4), file.get(from..from + size).expect("a section within the file"))
    };
    let (_, names) = header(number(0x3E, 2));
    let name = |at: usize| {
        let bytes = names[at..].split(|byte| *byte == 0).next().expect("split gives one part");
        std::str::from_utf8(bytes).expect("names of sections are text")
    };
    (0..count).map(header).map(|(at, bytes)| (name(at), bytes)).collect()
}
