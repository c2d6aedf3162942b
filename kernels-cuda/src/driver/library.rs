//! Where the driver's library is.

use std::path::PathBuf;

/// The driver's library.
pub(super) const LIBRARY: &str = "libcuda.so.1";

/// Where distributions and the vendor's installers put it, besides the loader's own path.
const FOLDERS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
];

/// The library, if it is where drivers are.
pub(super) fn find() -> Option<PathBuf> {
    tandem_hal::find_library(LIBRARY, FOLDERS)
}
