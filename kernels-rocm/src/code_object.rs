//! The embedded code objects.

/// One source compiled for one target.
#[derive(Debug)]
pub struct CodeObject {
    /// The source without extension, such as `norm/rms`.
    pub name: &'static str,
    /// The target, such as `gfx942`.
    pub target: &'static str,
    /// Digest of the bytes.
    pub sha256: &'static str,
    /// As the driver gets them, at a multiple of 64 bytes.
    pub bytes: &'static [u8],
    /// Its kernels, in order of name.
    pub entries: &'static [Entry],
}

/// What one kernel needs. None has memory of its own beyond registers; the objects' tests refuse that.
#[derive(Debug)]
pub struct Entry {
    /// The symbol.
    pub name: &'static str,
    /// Threads of a block at most.
    pub threads: u32,
    /// Vector registers of a lane, those for accumulation among them.
    pub vgprs: u32,
    /// Registers for accumulation among those.
    pub agprs: u32,
    /// Local memory of a block, without what a launch adds.
    pub lds_bytes: u32,
    /// Waves that fit a SIMD.
    pub occupancy: u32,
    /// Offset and bytes of each argument.
    pub arguments: &'static [(u32, u32)],
}

/// Loaders read words where they lie.
#[repr(align(64))]
struct Aligned<T>(T);

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Every object in this build.
pub fn all() -> &'static [CodeObject] {
    OBJECTS
}

/// An object by name and target.
pub fn find(name: &str, target: &str) -> Option<&'static CodeObject> {
    OBJECTS.iter().find(|object| object.name == name && object.target == target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_an_object_for_both_parts() {
        for target in ["gfx942", "gfx950"] {
            let object = find("norm/rms", target).unwrap();
            assert!(object.bytes.starts_with(b"\x7fELF"));
            assert_eq!(object.bytes.as_ptr().addr() % 64, 0);
            assert_eq!(object.entries[0].name, "norm_rms__portable");
        }
        assert!(find("norm/rms", "gfx90a").is_none());
    }
}
