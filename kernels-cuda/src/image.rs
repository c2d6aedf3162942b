//! The embedded kernel images.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use sha2::{Digest, Sha256};
use tandem_hal::{Error, Result};

/// One source compiled for one target.
#[derive(Debug)]
pub struct Image {
    /// The source without extension, such as `norm/rms`.
    pub name: &'static str,
    /// The target, such as `sm_90a`.
    pub target: &'static str,
    /// Bytes as the driver gets them.
    pub bytes: usize,
    /// Digest of those bytes.
    pub sha256: &'static str,
    /// Compressed.
    pub packed: &'static [u8],
    /// Its kernels, by name.
    pub entries: &'static [Entry],
}

/// Resources of one kernel, as the assembler gave them. None has local memory or spills: the build
/// refuses those.
#[derive(Debug)]
pub struct Entry {
    /// The symbol.
    pub name: &'static str,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block, without what a launch adds.
    pub shared_bytes: u32,
}

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Every image in this build.
pub fn all() -> &'static [Image] {
    IMAGES
}

/// Why this build has no images, if it has none.
pub fn absent() -> Option<&'static str> {
    ABSENT
}

/// The target of a compute capability, if there are images for it.
pub fn target((major, minor): (i32, i32)) -> Option<&'static str> {
    match (major, minor) {
        (9, 0) => Some("sm_90a"),
        // One image serves the family.
        (10, 0 | 3) => Some("sm_100f"),
        _ => None,
    }
}

/// An image by name and target.
pub fn find(name: &str, target: &str) -> Option<&'static Image> {
    IMAGES.iter().find(|image| image.name == name && image.target == target)
}

impl Image {
    /// The bytes as the driver gets them, their digest checked.
    ///
    /// # Errors
    /// When this program's file was damaged.
    pub fn unpack(&self) -> Result<Vec<u8>> {
        let damaged = || Error::Unsupported {
            op: format!("kernel image {}", self.name),
            reason: "its bytes in this program are damaged; install the program again".into(),
        };
        let limit = self.bytes;
        let bytes = decompress_to_vec_zlib_with_limit(self.packed, limit).map_err(|_| damaged())?;
        let digest = Sha256::digest(&bytes);
        let spelled: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if spelled == self.sha256 { Ok(bytes) } else { Err(damaged()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Registers and shared memory of every kernel, so that a change that costs any is seen.
    const RESOURCES: &str = include_str!("../resources.txt");

    /// Prints why this test does nothing, if there are no images.
    fn skipped() -> bool {
        if let Some(why) = absent() {
            println!("SKIPPED cuda: {why}");
        }
        absent().is_some()
    }

    #[test]
    fn images_unpack_to_their_digests() {
        if skipped() {
            return;
        }
        for image in all() {
            let bytes = image.unpack().unwrap();
            assert!(bytes.starts_with(b"\x7fELF"), "{} {}", image.name, image.target);
            let packed = image.packed[..image.packed.len() - 1].to_vec().leak();
            let damaged = Image { packed, entries: &[], ..*image };
            assert!(damaged.unpack().is_err());
        }
    }

    #[test]
    fn resources_are_those_on_record() {
        if skipped() {
            return;
        }
        if option_env!("NVCC_APPEND_FLAGS").is_some() {
            println!("SKIPPED cuda: the kernels were compiled with NVCC_APPEND_FLAGS");
            return;
        }
        let mut now = String::new();
        for Image { name, target, entries, .. } in all() {
            for Entry { name: kernel, registers, shared_bytes } in *entries {
                let of = format!("{name} {target} {kernel}");
                writeln!(now, "{of}: {registers} registers, {shared_bytes} bytes shared").unwrap();
            }
        }
        assert!(now == RESOURCES, "kernels-cuda/resources.txt should now be:\n{now}");
    }

    #[test]
    fn capabilities_have_the_targets_of_the_build() {
        for (capability, name) in [((9, 0), "sm_90a"), ((10, 0), "sm_100f"), ((10, 3), "sm_100f")] {
            assert_eq!(target(capability), Some(name));
            assert!(absent().is_some() || find("norm/rms", name).is_some());
        }
        assert_eq!((target((8, 0)), target((12, 0))), (None, None));
    }
}
