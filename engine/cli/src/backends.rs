//! The backends in this binary, and the devices that `--device` names.

use std::sync::Arc;

use tandem_cuda::CudaProvider;
use tandem_engine::{Error, Result};
use tandem_hal::{Device, DeviceInfo, Op, Options, Provider};
use tandem_reference::{RefProvider, Setup};
use tandem_rocm::RocmProvider;

use crate::arguments::Common;
use crate::{console, kernels};

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
        return first_able(&providers, &options, Ok, |_| {});
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

/// Opens devices as [`open`] does and gives what `ready` makes of them. Where the user names none,
/// a device for which `ready` finds no kernel is passed over for the next backend's, with a note.
///
/// # Errors
/// As [`open`], and those of `ready`.
pub(crate) fn open_for<T>(
    common: &Common,
    mut ready: impl FnMut(Vec<Arc<dyn Device>>) -> Result<T>,
) -> Result<T> {
    if common.device.is_some() {
        return ready(open(common)?);
    }
    let options = Options { overrides: overrides(common)? };
    first_able(&providers(common), &options, ready, console::note)
}

/// What `ready` makes of the first device of the first backend for which it does not lack a kernel;
/// for the last backend that has devices, whatever `ready` says.
fn first_able<T>(
    providers: &[Box<dyn Provider>],
    options: &Options,
    mut ready: impl FnMut(Vec<Arc<dyn Device>>) -> Result<T>,
    mut note: impl FnMut(&str),
) -> Result<T> {
    let mut able = providers.iter().filter(|provider| provider.devices().is_ok()).peekable();
    loop {
        let provider = able.next().expect("the reference backend always has a device");
        let devices = opened(provider.as_ref(), &[0], options)?;
        let name = devices[0].info().name.clone();
        match (ready(devices), able.peek()) {
            (Err(error), Some(next)) if lacks_kernel(&error) => {
                note(&format!("passed over {name} for {}: {error}", next.name()));
            }
            (made, _) => return made,
        }
    }
}

/// Whether a device has no kernel for an operator.
pub(crate) fn lacks_kernel(error: &Error) -> bool {
    matches!(error, Error::Device(tandem_hal::Error::Unsupported { .. }))
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
    use tandem_hal::null::{Null, Table};
    use tandem_hal::{Candidate, Class, Enc, Extents, Layout, Real, RmsNorm, Sym, View, Want};

    /// A backend with one device and no kernel.
    struct Bare;

    impl Provider for Bare {
        fn name(&self) -> &'static str {
            "bare"
        }
        fn devices(&self) -> tandem_hal::Result<Vec<DeviceInfo>> {
            let mut devices = RefProvider::default().devices()?;
            devices[0].name = "bare:0".into();
            Ok(devices)
        }
        fn open(&self, _: &[u32], _: &Options) -> tandem_hal::Result<Vec<Arc<dyn Device>>> {
            let device = |info| Arc::new(Null::new(info, Some(Arc::new(Bare)))) as Arc<dyn Device>;
            Ok(self.devices()?.into_iter().map(device).collect())
        }
    }

    impl Table for Bare {
        fn candidates(&self, _: &Op, _: &Want) -> Vec<Candidate> {
            Vec::new()
        }
        fn layout(&self, _: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
            (Layout::Plain, View::reserved_bytes(enc, shape))
        }
    }

    /// Which device can normalise, and the notes.
    fn able(providers: &[Box<dyn Provider>]) -> (Result<String>, Vec<String>) {
        let op = Op::from(RmsNorm { width: 64, eps: Real::new(1e-20) });
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 8)]));
        let ready = |devices: Vec<Arc<dyn Device>>| {
            devices[0].prepare(&op, &want)?;
            Ok(devices[0].info().name.clone())
        };
        let mut notes = Vec::new();
        let note = |note: &str| notes.push(note.to_owned());
        (first_able(providers, &Options::default(), ready, note), notes)
    }

    #[test]
    fn a_device_that_lacks_an_operator_is_passed_over_with_a_note() {
        let reference = || Box::new(RefProvider::default());
        let (chosen, notes) = able(&[Box::new(Bare), reference()]);
        assert!(chosen.unwrap().starts_with("reference"));
        let expected = "passed over bare:0 for reference: norm.rms is not supported here: no row";
        assert_eq!(notes, [expected]);
        let (chosen, notes) = able(&[reference(), Box::new(Bare)]);
        assert!(chosen.unwrap().starts_with("reference"));
        assert_eq!(notes, [""; 0]);
        // With nothing left to pass it over for, the error stands.
        let (chosen, notes) = able(&[Box::new(Bare)]);
        assert!(lacks_kernel(&chosen.unwrap_err()));
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn only_a_lack_of_kernels_passes_a_device_over() {
        let providers: Vec<Box<dyn Provider>> =
            vec![Box::new(Bare), Box::new(RefProvider::default())];
        let full = |_| Err::<(), _>(Error::DoesNotFit { problem: "full".into() });
        let silent = |note: &str| panic!("{note}");
        let error = first_able(&providers, &Options::default(), full, silent).unwrap_err();
        assert_eq!(error.exit_code(), 3);
    }

    fn parse(text: &str) -> Result<Selection> {
        let common = Common::default();
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
