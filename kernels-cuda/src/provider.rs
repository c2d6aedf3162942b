//! NVIDIA devices.

use crate::{
    device::{CudaDevice, info, info_of},
    driver::{Board, Context, Driver},
    group::Member,
    image, rows,
};
use std::sync::Arc;
use tandem_hal::{
    Candidate, Class, Device, DeviceInfo, Enc, Error, Layout, Op, Options, Provider, Result, View,
    Want,
    null::{Null, Table},
};

/// Boards that plans may be made for without one: name, compute capability, memory as the driver counts
/// it, and shared memory of a block.
const BOARDS: &[(&str, (i32, i32), u64, u64)] =
    &[("NVIDIA H200", (9, 0), 150_109_000_000, 232_448)];

/// Lists and opens NVIDIA devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaProvider;

impl CudaProvider {
    fn none(self, name: &str, why: &str) -> Error {
        let reason = format!("{why}; use --device reference");
        Error::NoDevice { name: name.into(), reason }
    }

    /// Every board, by ordinal.
    fn boards(self, name: &str) -> Result<Vec<Board>> {
        let driver = Driver::open();
        let mut reasons = vec![];
        if let Some(why) = image::absent() {
            reasons.push(format!("this build has no NVIDIA kernels ({why})"));
        }
        match driver {
            Err(why) => reasons.push(why),
            Ok(driver) if reasons.is_empty() => {
                let boards = Board::all(driver)?;
                if !boards.is_empty() {
                    return Ok(boards);
                }
                reasons.push("the NVIDIA driver lists no board".into());
            }
            Ok(_) => {}
        }
        Err(self.none(name, &reasons.join(", and ")))
    }

    /// Facts of every board, at least one of which this build has kernels for.
    fn listed(self, name: &str) -> Result<Vec<(Board, DeviceInfo)>> {
        let boards = self.boards(name)?.into_iter().enumerate();
        let listed = boards.map(|(i, board)| Ok((board, info_of(board, i)?)));
        let listed: Vec<_> = listed.collect::<Result<_>>()?;
        if listed.iter().any(|(_, info)| has_kernels(info)) {
            return Ok(listed);
        }
        Err(self.none(name, &without_kernels(&listed[0].1)))
    }
}

fn has_kernels(info: &DeviceInfo) -> bool {
    image::all().iter().any(|image| image.target == info.arch)
}

fn without_kernels(info: &DeviceInfo) -> String {
    let (board, arch) = (&info.board, &info.arch);
    format!("{board} is {arch}, this build has kernels for {}", rows::ALL.join(" and "))
}

impl Provider for CudaProvider {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self.listed(self.name())?.into_iter().map(|(_, info)| info).collect())
    }

    fn open(&self, ordinals: &[u32], options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        let names: Vec<_> = ordinals.iter().map(u32::to_string).collect();
        let name = format!("{}:{}", self.name(), names.join(","));
        if ordinals.is_empty() {
            return Err(self.none(&name, "name at least one device, such as cuda:0"));
        }
        let listed = self.listed(&name)?;
        let ranks = ordinals.len() as u32;
        let find = |ordinal: &u32| -> Result<(Arc<Context>, DeviceInfo)> {
            let there = format!("device {ordinal} of {}", listed.len());
            let found = listed.get(*ordinal as usize);
            let (board, info) = found.ok_or_else(|| self.none(&name, &there))?;
            if !has_kernels(info) {
                return Err(self.none(&name, &without_kernels(info)));
            }
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
            Ok(Arc::new(CudaDevice::open(context, info, options, member)?))
        };
        ranked.map(open).collect()
    }

    fn driver(&self) -> Option<String> {
        Some(Driver::open().ok()?.release())
    }

    fn image(&self, op: &str, row: &str, arch: &str) -> Option<&'static str> {
        Some(image::find(rows::image(op, row)?, arch)?.sha256)
    }

    fn pretend(&self, board: &str) -> Result<Null> {
        let known = BOARDS.iter().find(|(name, ..)| *name == board);
        let Some(&(_, capability, memory_bytes, shared_memory_bytes)) = known else {
            let names: Vec<_> = BOARDS.iter().map(|(name, ..)| *name).collect();
            let reason = format!("the cuda backend knows {}", names.join(", "));
            return Err(Error::NoDevice { name: board.into(), reason });
        };
        let (name, board) = (self.name().into(), board.into());
        let info = info(name, board, capability, memory_bytes, shared_memory_bytes);
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

    #[test]
    fn c096_the_device_list_says_what_is_missing() {
        if CudaProvider.devices().is_ok() {
            println!("SKIPPED cuda: there is a device");
            return;
        }
        for error in [
            CudaProvider.devices().unwrap_err(),
            CudaProvider.open(&[0, 1], &Options::default()).map(|_| ()).unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(message.starts_with("no device cuda"), "{message}");
            assert!(message.ends_with("use --device reference"), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn a_board_that_is_not_there_has_a_table() {
        let null = CudaProvider.pretend("NVIDIA H200").unwrap();
        let op = Op::from(RmsNorm { width: 64, eps: Real::new(1e-20) });
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 8)]));
        let list = Device::candidates(&null, &op, &want);
        assert_eq!(list.len(), 1);
        assert!(list[0].verdict.is_ok());
        assert!(CudaProvider.pretend("another").is_err());
        let image = |row| CudaProvider.image("norm.rms", row, "sm_90a");
        assert_eq!(image("portable"), image::find("norm/rms", "sm_90a").map(|i| i.sha256));
        assert_eq!(image("none"), None);
    }

    #[test]
    fn a_device_that_nobody_names_is_refused() {
        let error = CudaProvider.open(&[], &Options::default()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("name at least one device"), "{error}");
    }
}
