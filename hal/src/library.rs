//! Where a vendor's driver library is. Looking for it loads nothing, so nothing in it can fail here;
//! for messages, as the loader itself looks in more places.

use std::path::{Path, PathBuf};

/// The first file of that name on the loader's path or in `folders`, where distributions and the
/// vendor's installers put it.
pub fn find_library(name: &str, folders: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = folders.iter().map(PathBuf::from);
    find_in(name, std::env::split_paths(&path).chain(usual))
}

fn find_in(name: &str, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    // An empty entry of the path means the working folder to the loader; a driver is not there.
    folders
        .filter(|folder| folder != Path::new(""))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_with_the_file_counts() {
        let name = "libvendor.so";
        let folder = std::env::temp_dir().join(format!("tandem-hal-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("second")).unwrap();
        let file = folder.join("second").join(name);
        std::fs::write(&file, b"").unwrap();
        let folders = ["", "first", "second"].map(|name| match name {
            "" => PathBuf::new(),
            name => folder.join(name),
        });
        let found = find_in(name, folders.clone().into_iter());
        assert_eq!(found.as_deref(), Some(file.as_path()));
        assert_eq!(find_in(name, folders.into_iter().take(2)), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
