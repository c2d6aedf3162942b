//! AMD devices.

use std::sync::Arc;

use tandem_hal::{Device, DeviceInfo, Error, Options, Provider, Result};

use crate::code_object;
use crate::driver::{self, Board, Driver, Version};

/// An object of every target that is quick to load.
const PROBE: &str = "rows/embed";

/// Lists and opens AMD devices; in this build there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct RocmProvider;

impl RocmProvider {
    fn no_device(self, name: String) -> Error {
        let driver = match Driver::open() {
            Ok(driver) => described(driver).unwrap_or_else(|failure| failure.to_string()),
            Err(why) => why,
        };
        let reason =
            format!("this build launches no AMD kernels yet; {driver}; use --device reference");
        Error::NoDevice { name, reason }
    }
}

/// The driver and what it lists.
fn described(driver: Driver) -> driver::Result<String> {
    let (version, path) = (driver.version()?, driver.path().display());
    let boards = Board::all(driver)?;
    let boards = boards.into_iter().map(named).collect::<driver::Result<Vec<_>>>()?;
    let listed = if boards.is_empty() { "no board".into() } else { boards.join(", ") };
    let age = if version < Version::OLDEST {
        format!(" and is older than {}", Version::OLDEST)
    } else {
        String::new()
    };
    Ok(format!("HIP {version} ({path}) lists {listed}{age}"))
}

/// A board and its target.
fn named(board: Board) -> driver::Result<String> {
    let probes: Vec<_> = code_object::all().iter().filter(|object| object.name == PROBE).collect();
    let name = board.name()?;
    let name = if name.is_empty() { "a board without a name" } else { &name };
    Ok(match board.target(&probes)? {
        Some(target) => format!("{name} ({target})"),
        None => format!("{name} (another target)"),
    })
}

impl Provider for RocmProvider {
    fn name(&self) -> &'static str {
        "rocm"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Err(self.no_device(self.name().into()))
    }

    fn open(&self, ordinals: &[u32], _options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        let list: Vec<_> = ordinals.iter().map(u32::to_string).collect();
        Err(self.no_device(format!("{}:{}", self.name(), list.join(","))))
    }

    fn driver(&self) -> Option<String> {
        let version = Driver::open().ok()?.version().ok()?;
        Some(format!("HIP {version}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c096_the_device_list_says_what_is_missing() {
        for error in [
            RocmProvider.devices().unwrap_err(),
            RocmProvider.open(&[0, 1], &Options::default()).map(|_| ()).unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(message.starts_with("no device rocm"), "{message}");
            assert!(message.ends_with("use --device reference"), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    /// Against whichever driver is here, such as Debian's without a board.
    #[test]
    fn a_driver_without_a_board_lists_none() {
        let driver = match Driver::open() {
            Ok(driver) => driver,
            Err(why) => {
                println!("SKIPPED rocm: {why}");
                return;
            }
        };
        if !Board::all(driver).unwrap().is_empty() {
            println!("SKIPPED rocm: there is a board");
            return;
        }
        let version = driver.version().unwrap();
        let said = described(driver).unwrap();
        assert!(said.starts_with(&format!("HIP {version} (")) && said.contains("lists no board"));
        assert_eq!(said.contains("older"), version < Version::OLDEST, "{said}");
        assert_eq!(RocmProvider.driver(), Some(format!("HIP {version}")));
    }
}
