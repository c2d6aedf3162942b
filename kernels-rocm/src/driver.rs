//! Where the driver's library is.

use std::path::PathBuf;

/// The driver's library.
pub(crate) const LIBRARY: &str = "libamdhip64.so";

/// Where distributions and the vendor's installers put it, besides the loader's own path.
const FOLDERS: &[&str] = &[
    "/opt/rocm/lib",
    "/opt/rocm/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/run/opengl-driver/lib",
];

/// The library, if it is where drivers are.
pub(crate) fn find() -> Option<PathBuf> {
    tandem_hal::find_library(LIBRARY, FOLDERS)
}
