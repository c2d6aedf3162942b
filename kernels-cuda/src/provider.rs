//! NVIDIA devices.

use crate::driver;
use std::sync::Arc;
use tandem_hal::{Device, DeviceInfo, Error, Options, Provider, Result};

/// Lists and opens NVIDIA devices; in this build there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaProvider;

impl CudaProvider {
    fn no_device(self, name: String) -> Error {
        let driver = match driver::find() {
            Some(path) => format!("the driver is at {}", path.display()),
            None => format!("there is no driver ({}) either", driver::LIBRARY),
        };
        let reason =
            format!("this build has no NVIDIA kernels yet; {driver}; use --device reference");
        Error::NoDevice { name, reason }
    }
}

impl Provider for CudaProvider {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Err(self.no_device(self.name().into()))
    }

    fn open(&self, ordinals: &[u32], _options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        let list: Vec<_> = ordinals.iter().map(u32::to_string).collect();
        Err(self.no_device(format!("{}:{}", self.name(), list.join(","))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c096_the_device_list_says_what_is_missing() {
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
}
