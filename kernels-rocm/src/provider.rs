//! AMD devices.

use std::sync::{Arc, OnceLock};

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

/// A board as the driver lists it.
#[derive(Clone, Debug)]
struct Listed {
    board: Board,
    /// The model's name, or what tells it from the models.
    named: String,
    /// None for boards that this build has no kernels for.
    target: Option<&'static str>,
    memory_bytes: u64,
}

impl Listed {
    fn of(board: Board) -> driver::Result<Listed> {
        let probes: Vec<_> =
            code_object::all().iter().filter(|object| object.name == PROBE).collect();
        let (target, memory_bytes) = (board.target(&probes)?, board.memory_bytes()?);
        let named = board_name(&board.name()?, target, board.compute_units()?, memory_bytes);
        Ok(Listed { board, named, target, memory_bytes })
    }

    /// Facts of a device, under a number that no other has.
    fn info(&self, ordinal: usize) -> DeviceInfo {
        let (name, target) = (format!("rocm:{ordinal}"), self.target.unwrap_or("unknown"));
        info(name, self.named.clone(), target, self.memory_bytes)
    }
}

impl RocmProvider {
    fn none(self, name: &str, why: &str) -> Error {
        let reason = format!("{why}; use --device reference");
        Error::NoDevice { name: name.into(), reason }
    }

    /// Every board by ordinal, at least one of which this build has kernels for.
    fn listed(self, name: &str) -> Result<&'static [Listed]> {
        // Boards do not come and go, and asking for their targets takes a moment.
        static LISTED: OnceLock<Vec<Listed>> = OnceLock::new();
        let driver = Driver::open().map_err(|why| self.none(name, &why))?;
        let refused = |failure: driver::Failure| self.none(name, &failure.to_string());
        let listed = match LISTED.get() {
            Some(listed) => listed,
            None => {
                let boards = Board::all(driver).map_err(refused)?.into_iter();
                let fresh = boards.map(Listed::of).collect::<driver::Result<_>>();
                let fresh = fresh.map_err(refused)?;
                LISTED.get_or_init(|| fresh)
            }
        };
        match unusable(driver.version().map_err(refused)?, listed) {
            Some(why) => Err(self.none(name, &format!("{why} ({})", driver.path().display()))),
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
    let others: Vec<_> = listed.iter().map(|other| other.named.as_str()).collect();
    let none = listed.iter().all(|listed| listed.target.is_none());
    none.then(|| without_kernels(&others.join(", ")))
}

fn without_kernels(boards: &str) -> String {
    format!("there is {boards}, this build has kernels for {}", rows::ALL.join(" and "))
}

impl Provider for RocmProvider {
    fn name(&self) -> &'static str {
        "rocm"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        // A board without kernels keeps its place, so that ordinals are the driver's.
        let listed = self.listed(self.name())?.iter().enumerate();
        Ok(listed.map(|(ordinal, listed)| listed.info(ordinal)).collect())
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
            let found = found.ok_or_else(|| self.none(&name, &there))?;
            if found.target.is_none() {
                return Err(self.none(&name, &without_kernels(&found.named)));
            }
            Ok((Context::open(found.board)?, found.info(*ordinal as usize)))
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
    use crate::faults::Faulty;
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
        let Some(faulty) = Faulty::new() else { return };
        let list = || -> Vec<_> {
            let boards = Board::all(faulty.driver).unwrap().into_iter();
            boards.map(|board| Listed::of(board).unwrap()).collect()
        };
        let boards = list();
        assert_eq!(unusable(new, &boards), None);
        assert_eq!(boards[1].info(1).board, "AMD Instinct MI300X");
        assert_eq!(unusable(old, &boards), Some(said));
        faulty.answer("hipModuleLoadData", 209);
        let (others, name) = (list(), "AMD Instinct MI300X (another target, 304 compute units)");
        let kernels = "this build has kernels for gfx942 and gfx950";
        assert_eq!(unusable(new, &others), Some(format!("there is {name}, {name}, {kernels}")));
        assert_eq!(unusable(new, &[&boards[..], &others].concat()), None);
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
