//! The driver's library: where it is, and its functions.

use std::ffi::{CStr, OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fmt};

use super::bindings::{Hip, hipError_t, hipSuccess};
use super::{Failure, Result, Version};

/// Names the library instead of the search, such as that of a simulator.
const NAMED: &str = "TANDEM_HIP_LIBRARY";

/// The releases that we know, newest first, and whatever a development package names.
const NAMES: [&str; 4] =
    ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// Where distributions and the vendor's installers put it, besides the loader's own path.
const FOLDERS: [&str; 6] = [
    "/opt/rocm/lib",
    "/opt/rocm/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/run/opengl-driver/lib",
];

/// The opened driver, for the rest of the process.
#[derive(Clone, Copy)]
pub struct Driver {
    opened: &'static Library,
}

struct Library {
    functions: Hip,
    path: PathBuf,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("path", &self.opened.path).finish_non_exhaustive()
    }
}

impl Driver {
    /// The driver of this process, opened once.
    ///
    /// # Errors
    /// Why there is none, for users: one line.
    pub fn open() -> std::result::Result<Driver, String> {
        static LIBRARY: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
        match LIBRARY.get_or_init(|| find(env::var_os(NAMED))) {
            Ok(opened) => Ok(Driver { opened }),
            Err(why) => Err(why.clone()),
        }
    }

    /// Another one, for tests.
    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Driver {
        let library = load(path.as_os_str()).unwrap_or_else(|why| panic!("{why}"));
        Driver { opened: Box::leak(Box::new(library)) }
    }

    /// The library's file.
    pub fn path(self) -> &'static Path {
        &self.opened.path
    }

    /// Its release.
    ///
    /// # Errors
    /// What the driver says.
    pub fn version(self) -> Result<Version> {
        let mut number = 0;
        // SAFETY: writes one integer.
        let code = unsafe { (self.functions().hipRuntimeGetVersion)(&mut number) };
        self.check("hipRuntimeGetVersion", code)?;
        Ok(Version::of(number))
    }

    pub(super) fn functions(self) -> &'static Hip {
        &self.opened.functions
    }

    /// The outcome of `call`.
    pub(super) fn check(self, call: &'static str, code: hipError_t) -> Result<()> {
        if code == hipSuccess {
            return Ok(());
        }
        // SAFETY: gives a static string for every code, known or not.
        let text = unsafe { (self.functions().hipGetErrorString)(code) };
        if text.is_null() {
            return Err(Failure::of(call, code, "the driver has no words for it"));
        }
        // SAFETY: not null, and the driver's strings end with a zero and live as long as the library, which is
        // never closed.
        let words = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        Err(Failure::of(call, code, &words))
    }
}

/// The library that is named, or the newest one found.
fn find(named: Option<OsString>) -> std::result::Result<Library, String> {
    if let Some(named) = named {
        if named.is_empty() {
            return Err(format!("{NAMED} is empty, which asks for no AMD driver"));
        }
        return load(&named).map_err(|why| format!("{NAMED}: {why}"));
    }
    let mut reasons = vec![];
    for name in NAMES {
        let found = tandem_hal::find_library(name, &FOLDERS);
        let is_found = found.is_some();
        match load(found.map_or(name.into(), PathBuf::into_os_string).as_os_str()) {
            Ok(library) => return Ok(library),
            // The loader's path has none of that name.
            Err(why) if !is_found && why.starts_with(name) => {}
            Err(why) => reasons.push(why),
        }
    }
    if reasons.is_empty() {
        return Err("there is no AMD driver (libamdhip64.so)".into());
    }
    Err(format!("the AMD driver does not load: {}", reasons.join("; ")))
}

fn load(path: &OsStr) -> std::result::Result<Library, String> {
    // SAFETY: loading runs the library's initialisers; it is the vendor's driver, or what the user named
    // in its place.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.map_err(|error| in_a_line(&error))?;
    // SAFETY: the symbols have the types of the vendor's headers, under the names that its releases keep
    // them.
    let functions = unsafe { Hip::from_library(library) };
    let functions = functions.map_err(|error| {
        let why = in_a_line(&error);
        format!("{why}: not HIP {} or later", Version::OLDEST)
    })?;
    Ok(Library { functions, path: path.into() })
}

fn in_a_line(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    // The loader's own words name the file.
    if let Some(source) = std::error::Error::source(error) {
        text = source.to_string();
    }
    text.lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(named: &str) -> String {
        match find(Some(named.into())) {
            Ok(_) => panic!("{named} is no driver"),
            Err(why) => why,
        }
    }

    #[test]
    fn what_is_no_driver_is_refused_in_a_line() {
        let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for (named, said) in [
            ("", "is empty"),
            ("/nonexistent/libamdhip64.so", "No such file"),
            ("/", "/"),
            (text, "Cargo.toml"),
            // A library without the functions.
            ("libm.so.6", "not HIP 6.0 or later"),
        ] {
            let why = refusal(named);
            assert!(why.starts_with(NAMED) && why.contains(said), "{named}: {why}");
            assert_eq!(why.lines().count(), 1, "{why}");
        }
    }
}
