//! The first board, or why a test does not run.

use std::sync::Arc;
use tandem_cuda::CudaProvider;
use tandem_hal::{Device, Options, Provider};

/// The first device. Without one the test says that it is skipped, or fails when
/// `TANDEM_GPU_REQUIRED=1` says that there must be one.
pub fn device() -> Option<Arc<dyn Device>> {
    match CudaProvider.open(&[0], &Options::default()) {
        Ok(mut devices) => devices.pop(),
        Err(why) => {
            let required = std::env::var_os("TANDEM_GPU_REQUIRED").is_some_and(|v| v == "1");
            assert!(!required, "TANDEM_GPU_REQUIRED=1, but {why}");
            println!("SKIPPED cuda: {why}");
            None
        }
    }
}
