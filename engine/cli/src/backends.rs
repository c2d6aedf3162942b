//! The backends in this binary, and the devices that `--device` names.

use std::sync::Arc;

use tandem_cuda::CudaProvider;
use tandem_engine::{Error, Result};
use tandem_hal::{Device, DeviceInfo, Op, Options, Provider};
use tandem_reference::{RefProvider, Setup};
use tandem_rocm::RocmProvider;

use crate::arguments::Common;
use crate::kernels;

/// The backends, in the order in which they are asked for devices.
pub(crate) fn providers(common: &Common) -> Vec<Box<dyn Provider>> {
    let threads = common.threads.map(usize::from);
    let setup = Setup { threads, ..Setup::default() };
    vec![Box::new(CudaProvider), Box::new(RocmProvider), Box::new(RefProvider { setup })]
}

/// Opens the devices that `--device` names as the ranks of one group; without it, the first device
/// of the first backend that has any.
///
/// # Errors
/// A name that is none, a backend without devices, or kernel overrides that name no row.
pub(crate) fn open(common: &Common) -> Result<Vec<Arc<dyn Device>>> {
    let providers = providers(common);
    let options = Options { overrides: overrides(common)? };
    let Some(text) = &common.device else {
        let first = providers.iter().find(|provider| provider.devices().is_ok());
        let first = first.expect("the reference backend always has a device");
        return opened(first.as_ref(), &[0], &options);
    };
    let Selection { backend, ordinals } = Selection::parse(text, &providers)?;
    let provider = providers[backend].as_ref();
    match ordinals {
        Some(ordinals) => opened(provider, &ordinals, &options),
        None => {
            let count = provider.devices()?.len() as u32;
            opened(provider, &(0..count).collect::<Vec<_>>(), &options)
        }
    }
}

fn opened(
    provider: &dyn Provider,
    ordinals: &[u32],
    options: &Options,
) -> Result<Vec<Arc<dyn Device>>> {
    let devices = provider.open(ordinals, options)?;
    for (operator, row) in &options.overrides {
        let rows = kernels::rows(devices[0].as_ref(), operator);
        if !rows.contains(&row.as_str()) {
            let problem = format!("{operator} has no row {row:?}; it has {}", rows.join(", "));
            return Err(refuse("--kernel", problem));
        }
    }
    Ok(devices)
}

fn overrides(common: &Common) -> Result<Vec<(String, String)>> {
    match common.kernels.iter().find(|(operator, _)| !Op::IDS.contains(&operator.as_str())) {
        None => Ok(common.kernels.clone()),
        Some((operator, _)) => {
            let problem = format!("there is no operator {operator:?}; 'tandem kernels' lists them");
            Err(refuse("--kernel", problem))
        }
    }
}

/// What `--device` names.
#[derive(Debug, PartialEq)]
struct Selection {
    /// Place in the list of backends.
    backend: usize,
    /// The devices in order of rank; `None` for all there are.
    ordinals: Option<Vec<u32>>,
}

impl Selection {
    /// Reads `NAME`, `NAME:all` or `NAME:0,1`; a name alone means its first device.
    fn parse(text: &str, providers: &[Box<dyn Provider>]) -> Result<Self> {
        let (name, list) = text.split_once(':').unwrap_or((text, "0"));
        let names: Vec<_> = providers.iter().map(|provider| provider.name()).collect();
        let Some(backend) = names.iter().position(|known| *known == name) else {
            let problem = format!("no backend {name:?}; known: {}", names.join(", "));
            return Err(refuse("--device", problem));
        };
        if list == "all" {
            return Ok(Self { backend, ordinals: None });
        }
        let parsed: std::result::Result<Vec<u32>, _> = list.split(',').map(str::parse).collect();
        let Ok(ordinals) = parsed else {
            let problem = format!("{list:?} is no list of devices; write {name}:0,1 or {name}:all");
            return Err(refuse("--device", problem));
        };
        let twice = (1..ordinals.len()).find(|&i| ordinals[..i].contains(&ordinals[i]));
        match twice {
            None => Ok(Self { backend, ordinals: Some(ordinals) }),
            Some(i) => {
                let problem = format!("device {} is named twice; name each once", ordinals[i]);
                Err(refuse("--device", problem))
            }
        }
    }
}

/// The devices of every backend that `--device` names, or of all.
///
/// # Errors
/// A name that is none.
pub(crate) fn listed(common: &Common) -> Result<Vec<Listed>> {
    let mut providers = providers(common);
    if let Some(text) = &common.device {
        let chosen = Selection::parse(text, &providers)?.backend;
        providers = vec![providers.swap_remove(chosen)];
    }
    let listed = |provider: Box<dyn Provider>| {
        let devices = provider.devices();
        Listed { provider, devices }
    };
    Ok(providers.into_iter().map(listed).collect())
}

/// A backend and its devices.
pub(crate) struct Listed {
    /// The backend.
    pub(crate) provider: Box<dyn Provider>,
    /// Its devices, or why there are none.
    pub(crate) devices: tandem_hal::Result<Vec<DeviceInfo>>,
}

fn refuse(argument: &str, problem: String) -> Error {
    Error::Argument { argument: argument.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Selection> {
        let common = Common { model: None, device: None, kernels: vec![], threads: None };
        Selection::parse(text, &providers(&common))
    }

    #[test]
    fn devices_are_named_by_backend_and_ordinals() {
        for (text, backend, ordinals) in [
            ("cuda", 0, Some(vec![0])),
            ("rocm:all", 1, None),
            ("reference:0,1", 2, Some(vec![0, 1])),
        ] {
            assert_eq!(parse(text).unwrap(), Selection { backend, ordinals });
        }
        for text in ["", "tpu", "cuda:", "cuda:x", "cuda:0,", "cuda:-1", "cuda:0,1,0", "cuda:0:1"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}");
            assert!(error.to_string().starts_with("--device: "), "{error}");
        }
    }
}
