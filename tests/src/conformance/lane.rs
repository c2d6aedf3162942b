//! Where rows are tested: a provider's device, under a name that filters pick.

use super::subject::Group;
use std::sync::Arc;
use tandem_hal::{DeviceInfo, Error, Options, Provider, Result};
use tandem_reference::{RefProvider, Setup, Weights};

/// One device of one provider.
#[derive(Clone)]
pub struct Lane {
    /// `reference:0`, `cuda:1`.
    pub name: String,
    /// Who opens it.
    pub provider: Arc<dyn Provider>,
    /// Which of its devices.
    pub ordinal: u32,
    /// Facts.
    pub info: DeviceInfo,
    /// Whether only operators with a weight that may be packed are of interest.
    pub packed_only: bool,
}

impl Lane {
    /// A lane for every device of a provider, under `name`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(name: &str, provider: &Arc<dyn Provider>) -> Result<Vec<Lane>> {
        let devices = provider.devices()?;
        let lane = |(ordinal, info): (usize, DeviceInfo)| Lane {
            name: format!("{name}:{ordinal}"),
            provider: provider.clone(),
            ordinal: ordinal as u32,
            info,
            packed_only: false,
        };
        Ok(devices.into_iter().enumerate().map(lane).collect())
    }

    /// The reference, and the reference with weights that nobody else can read.
    pub fn reference() -> Vec<Lane> {
        let scrambled = Setup { weights: Weights::Scrambled, ..Setup::default() };
        let lane = |name: &str, setup: Setup, packed_only: bool| {
            let provider: Arc<dyn Provider> = Arc::new(RefProvider { setup });
            let lanes = Lane::of(name, &provider);
            // The host is always there; were it not, the suite would have no lane and fail.
            lanes.unwrap_or_default().into_iter().map(move |l| Lane { packed_only, ..l })
        };
        lane("reference", Setup::default(), false)
            .chain(lane("scrambled", scrambled, true))
            .collect()
    }

    /// Every device of every provider; those that have none are named with the reason.
    pub fn all() -> (Vec<Lane>, Vec<String>) {
        let vendors: Vec<Arc<dyn Provider>> = vec![
            Arc::new(tandem_cuda::CudaProvider),
            Arc::new(tandem_rocm::RocmProvider),
            #[cfg(feature = "emu")]
            Arc::new(tandem_cuda::emu::EmuProvider),
        ];
        let (mut lanes, mut skipped) = (Lane::reference(), vec![]);
        for provider in vendors {
            match Lane::of(provider.name(), &provider) {
                Ok(devices) => lanes.extend(devices),
                Err(why) => skipped.push(format!("SKIPPED {}: {why}", provider.name())),
            }
        }
        (lanes, skipped)
    }

    /// Open as many ranks, with `row` forced for `op` if one is named.
    ///
    /// # Errors
    /// As [`Lane::open_with`].
    pub fn open(&self, ranks: u32, op: &str, row: Option<&str>) -> Result<Group> {
        self.open_with(ranks, row.map(|row| (op.into(), row.into())).into_iter().collect())
    }

    /// Open as many ranks with these overrides. One rank is this lane's device, more are the
    /// provider's first.
    ///
    /// # Errors
    /// What the provider returns; fewer devices than ranks are `NoDevice`.
    pub fn open_with(&self, ranks: u32, overrides: Vec<(String, String)>) -> Result<Group> {
        let alone = [self.ordinal];
        let all: Vec<u32> = (0..ranks).collect();
        let ordinals = if ranks == 1 { &alone[..] } else { &all[..] };
        let group = self.provider.open(ordinals, &Options { overrides })?;
        if group.len() == ranks as usize {
            return Ok(group);
        }
        let reason = format!("{} ranks were asked for, {} opened", ranks, group.len());
        Err(Error::NoDevice { name: self.name.clone(), reason })
    }
}
