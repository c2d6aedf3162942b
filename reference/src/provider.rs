//! The reference among the backends.

use crate::{
    RefDevice, Setup, Weights,
    device::{host_memory_bytes, info, table_of},
};
use std::sync::Arc;
use tandem_hal::{
    Candidate, Class, Device, DeviceInfo, Enc, Error, Layout, Op, Options, Provider, Result, Want,
    null::{Null, Table},
};

/// Opens reference devices. There is always one, and any number of ranks may be asked for.
#[derive(Default, Clone)]
pub struct RefProvider {
    /// How devices are made; the options given to [`Provider::open`] replace its own.
    pub setup: Setup,
}

impl Provider for RefProvider {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![info(0, 1, self.setup.memory_bytes.unwrap_or_else(host_memory_bytes))])
    }

    fn open(&self, ordinals: &[u32], options: &Options) -> Result<Vec<Arc<dyn Device>>> {
        if ordinals.is_empty() {
            let reason = "name at least one rank, such as reference:0".into();
            return Err(Error::NoDevice { name: "reference".into(), reason });
        }
        let setup = Setup { options: options.clone(), ..self.setup.clone() };
        let group = RefDevice::group(ordinals.len() as u32, &setup);
        Ok(group.into_iter().map(|d| Arc::new(d) as Arc<dyn Device>).collect())
    }

    fn pretend(&self, board: &str) -> Result<Null> {
        if board != "reference" {
            let reason = "the reference backend knows itself only".into();
            return Err(Error::NoDevice { name: board.into(), reason });
        }
        let info = info(0, 1, self.setup.memory_bytes.unwrap_or_else(host_memory_bytes));
        let table = HostTable { info: info.clone(), weights: self.setup.weights };
        Ok(Null::new(info, Some(Arc::new(table))))
    }
}

/// What is known of the reference without opening it.
struct HostTable {
    info: DeviceInfo,
    weights: Weights,
}

impl Table for HostTable {
    fn candidates(&self, op: &Op, want: &Want) -> Vec<Candidate> {
        table_of(op, &self.info, want)
    }
    fn layout(&self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        self.weights.layout(class, enc, shape)
    }
}
