//! The generated table of images.

use std::fmt::Write as _;

use crate::image::Image;

/// No images, and why.
pub(crate) fn empty(why: &str) -> String {
    format!(
        "pub(crate) static IMAGES: &[Image] = &[];\n\
         pub(crate) const ABSENT: Option<&str> = Some({why:?});\n"
    )
}

/// A line for every image.
pub(crate) fn of(images: &[Image]) -> String {
    let mut text = String::from("pub(crate) static IMAGES: &[Image] = &[\n");
    for Image { name, target, entries, bytes, sha256, packed } in images {
        let entries: Vec<String> = entries
            .iter()
            .map(|e| {
                let (name, registers, shared_bytes) = (&e.name, e.registers, e.shared_bytes);
                format!(
                    "Entry {{ name: {name:?}, registers: {registers}, shared_bytes: {shared_bytes} }}"
                )
            })
            .collect();
        writeln!(
            text,
            "    Image {{ name: {name:?}, target: {target:?}, bytes: {bytes}, sha256: {sha256:?}, \
             packed: include_bytes!({packed:?}), entries: &[{}] }},",
            entries.join(", ")
        )
        .expect("strings grow");
    }
    text.push_str("];\npub(crate) const ABSENT: Option<&str> = None;\n");
    text
}
