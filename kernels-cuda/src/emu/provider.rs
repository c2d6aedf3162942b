//! Emulated devices among the backends.

use super::device::{EmuDevice, info_of};
use std::sync::Arc;
use tandem_hal::{Device, DeviceInfo, Options, Provider, Result};
use tandem_reference::RefDevice;

/// Opens emulated devices: as many as are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmuProvider;

impl Provider for EmuProvider {
    fn name(&self) -> &'static str {
        "cuda-emu"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![info_of(RefDevice::new().info())])
    }

    fn open(&self, ordinals: &[u32], options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        let group = EmuDevice::group(ordinals.len() as u32, options);
        Ok(group.into_iter().map(|d| Arc::new(d) as Arc<dyn Device>).collect())
    }
}
