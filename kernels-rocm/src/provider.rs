//! AMD devices.

use std::sync::Arc;

use tandem_hal::null::{Null, Table};
use tandem_hal::{
    Candidate, Class, Device, DeviceInfo, Enc, Error, Layout, Op, Options, Provider, Result, View,
    Want,
};

use crate::device::RocmDevice;
use crate::driver::{self, Board, Context, Driver, Version};
use crate::group::Member;
use crate::model::{Model, board_name, info};
use crate::{code_object, rows};

/// An object of every target that is quick to load.
const PROBE: &str = "rows/embed";

/// Lists and opens AMD devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct RocmProvider;

/// A board as listed: its facts, or what it is called if this build has no kernels for it.
type Listed = (Board, std::result::Result<DeviceInfo, String>);

impl RocmProvider {
    fn none(self, name: &str, why: &str) -> Error {
        let reason = format!("{why}; use --device reference");
        Error::NoDevice { name: name.into(), reason }
    }

    /// Facts of every board by ordinal, at least one of which this build has kernels for.
    fn listed(self, name: &str) -> Result<Vec<Listed>> {
        let driver = Driver::open().map_err(|why| self.none(name, &why))?;
        let listed = listed(driver).map_err(|failure| self.none(name, &failure.to_string()))?;
        match unusable(driver.version()?, &listed) {
            Some(why) => {
                let path = driver.path().display();
                Err(self.none(name, &format!("{why} ({path})")))
            }
            None => Ok(listed),
        }
    }
}

/// Why none of the boards can be used, if none can.
fn unusable(version: Version, listed: &[Listed]) -> Option<String> {
    if version < Version::OLDEST {
        let oldest = Version::OLDEST;
        return Some(format!("HIP {version} is older than {oldest}: update ROCm"));
    }
    if listed.is_empty() {
        return Some(format!("HIP {version} lists no board"));
    }
    let others: std::result::Result<Vec<_>, _> =
        listed.iter().map(|(_, info)| info.as_ref().map_or_else(|b| Ok(b.as_str()), Err)).collect();
    others.ok().map(|boards| without_kernels(&boards.join(", ")))
}

fn without_kernels(boards: &str) -> String {
    format!("there is {boards}, this build has kernels for {}", rows::ALL.join(" and "))
}

/// What the driver lists.
fn listed(driver: Driver) -> driver::Result<Vec<Listed>> {
    let probes: Vec<_> = code_object::all().iter().filter(|object| object.name == PROBE).collect();
    let facts = |(ordinal, board): (usize, Board)| {
        let (target, memory_bytes) = (board.target(&probes)?, board.memory_bytes()?);
        let named = board_name(&board.name()?, target, board.compute_units()?, memory_bytes);
        let facts = match target {
            Some(target) => Ok(info(format!("rocm:{ordinal}"), named, target, memory_bytes)),
            None => Err(named),
        };
        Ok((board, facts))
    };
    Board::all(driver)?.into_iter().enumerate().map(facts).collect()
}

impl Provider for RocmProvider {
    fn name(&self) -> &'static str {
        "rocm"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let listed = self.listed(self.name())?.into_iter().enumerate();
        // A board without kernels keeps its place, so that ordinals are the driver's.
        let facts = listed.map(|(i, (board, facts))| match facts {
            Ok(info) => Ok(info),
            Err(named) => Ok(info(format!("rocm:{i}"), named, "unknown", board.memory_bytes()?)),
        });
        facts.collect()
    }

    fn open(&self, ordinals: &[u32], options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        let names: Vec<_> = ordinals.iter().map(u32::to_string).collect();
        let name = format!("{}:{}", self.name(), names.join(","));
        if ordinals.is_empty() {
            return Err(self.none(&name, "name at least one device, such as rocm:0"));
        }
        let listed = self.listed(&name)?;
        let ranks = ordinals.len() as u32;
        let find = |ordinal: &u32| -> Result<(Arc<Context>, DeviceInfo)> {
            let there = format!("device {ordinal} of {}", listed.len());
            let found = listed.get(*ordinal as usize);
            let (board, facts) = found.ok_or_else(|| self.none(&name, &there))?;
            let other = |named: &String| self.none(&name, &without_kernels(named));
            let info = facts.as_ref().map_err(other)?;
            Ok((Context::open(*board)?, info.clone()))
        };
        let found = ordinals.iter().map(find).collect::<Result<Vec<_>>>()?;
        let contexts: Vec<_> = found.iter().map(|(context, _)| context.clone()).collect();
        let members: Vec<_> = match &contexts[..] {
            [_] => vec![None],
            several => Member::all(several)?.into_iter().map(Some).collect(),
        };
        let ranked = found.into_iter().zip(members).enumerate();
        let open = |(rank, ((context, info), member))| -> Result<Arc<dyn Device>> {
            let info = DeviceInfo { rank: rank as u32, ranks, ..info };
            Ok(Arc::new(RocmDevice::open(context, info, options, member)?))
        };
        ranked.map(open).collect()
    }

    fn driver(&self) -> Option<String> {
        let version = Driver::open().ok()?.version().ok()?;
        Some(format!("hip-{version}"))
    }

    fn image(&self, op: &str, row: &str, arch: &str) -> Option<&'static str> {
        Some(code_object::find(rows::object(op, row)?, arch)?.sha256)
    }

    fn pretend(&self, board: &str) -> Result<Null> {
        let model = Model::named(board).ok_or_else(|| {
            let reason = format!("the rocm backend knows {}", Model::names());
            Error::NoDevice { name: board.into(), reason }
        })?;
        let info = model.info(self.name().into());
        Ok(Null::new(info.clone(), Some(Arc::new(BoardTable(info)))))
    }
}

/// What is known of a board without its driver.
struct BoardTable(DeviceInfo);

impl Table for BoardTable {
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        rows::table(op, &self.0, want, &Options::default())
    }
    fn layout(&self, _class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        (Layout::Plain, View::reserved_bytes(enc, shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::{Extents, Real, RmsNorm, Sym};

    fn refusals() -> [Error; 2] {
        [
            RocmProvider.devices().unwrap_err(),
            RocmProvider.open(&[0, 1], &Options::default()).map(|_| ()).unwrap_err(),
        ]
    }

    #[test]
    fn c096_the_device_list_says_what_is_missing() {
        if RocmProvider.devices().is_ok() {
            println!("SKIPPED rocm: there is a device");
            return;
        }
        for error in refusals() {
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
        let old = version < Version::OLDEST;
        let why = if old { "older than 6.0: update ROCm" } else { "lists no board" };
        for error in refusals() {
            let message = error.to_string();
            assert!(message.contains(&format!("HIP {version}")), "{message}");
            assert!(message.contains(why) && message.contains("libamdhip64"), "{message}");
        }
        assert_eq!(RocmProvider.driver(), Some(format!("hip-{version}")));
    }

    #[test]
    fn a_driver_of_no_use_says_why() {
        let (old, new) = (Version { major: 5, minor: 7 }, Version { major: 7, minor: 0 });
        let said = unusable(old, &[]).unwrap();
        assert_eq!(said, "HIP 5.7 is older than 6.0: update ROCm");
        assert_eq!(unusable(new, &[]).unwrap(), "HIP 7.0 lists no board");
    }

    #[test]
    fn boards_that_are_not_there_have_a_table() {
        let op = Op::from(RmsNorm { width: 64, eps: Real::new(1e-20) });
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 8)]));
        for board in Model::names().split(", ") {
            let null = RocmProvider.pretend(board).unwrap();
            let list = Device::candidates(&null, &op, &want);
            assert_eq!(list.len(), 1);
            assert!(list[0].verdict.is_ok(), "{board}");
        }
        let error = RocmProvider.pretend("another").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("MI300X") && error.contains("MI355X"), "{error}");
        let image = |row, arch| RocmProvider.image("norm.rms", row, arch);
        for arch in rows::ALL {
            let object = code_object::find("norm/rms", arch).map(|o| o.sha256);
            assert!(object.is_some() && image("portable", arch) == object);
        }
        assert_eq!((image("none", "gfx942"), image("portable", "gfx90a")), (None, None));
    }

    #[test]
    fn a_device_that_nobody_names_is_refused() {
        let error = RocmProvider.open(&[], &Options::default()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("name at least one device"), "{error}");
    }
}
