//! Where the driver's library is, for messages: the loader itself looks in more places.

use std::path::{Path, PathBuf};

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

/// The first file of that name on the loader's path or in the usual folders.
pub(super) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = FOLDERS.iter().map(PathBuf::from);
    find_in(std::env::split_paths(&path).chain(usual))
}

fn find_in(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    // An empty entry of the path means the working folder to the loader; a driver is not there.
    folders
        .filter(|folder| folder != Path::new(""))
        .map(|folder| folder.join(LIBRARY))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_with_the_file_counts() {
        let folder = std::env::temp_dir().join(format!("tandem-cuda-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("second")).unwrap();
        let file = folder.join("second").join(LIBRARY);
        std::fs::write(&file, b"").unwrap();
        let folders = ["", "first", "second"].map(|name| match name {
            "" => PathBuf::new(),
            name => folder.join(name),
        });
        let found = find_in(folders.clone().into_iter());
        assert_eq!(found.as_deref(), Some(file.as_path()));
        assert_eq!(find_in(folders.into_iter().take(2)), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
