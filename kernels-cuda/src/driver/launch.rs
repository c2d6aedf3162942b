//! How a kernel is launched.

use super::Result;
use cudarc::driver::sys::{
    CUlaunchAttribute, CUlaunchAttributeID as Id, CUlaunchAttributeValue,
    CUlaunchAttributeValue_union__bindgen_ty_1 as Cluster, CUlaunchConfig, CUstream,
};

/// Grid, blocks and attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Shared memory that the launch adds to the kernel's own.
    pub shared_bytes: u32,
    /// Blocks of a cluster, if the kernel has clusters.
    pub cluster: Option<[u32; 3]>,
    /// Whether it may start before what is in front of it has ended; the kernel waits itself.
    pub programmatic: bool,
}

impl Shape {
    /// So many blocks of so many threads.
    pub const fn flat(blocks: u32, threads: u32) -> Shape {
        Shape {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            cluster: None,
            programmatic: false,
        }
    }

    /// Whether there is nothing to launch.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }

    /// Calls `f` with the driver's form of it.
    pub(super) fn with_config(
        &self,
        stream: CUstream,
        f: impl FnOnce(&CUlaunchConfig) -> Result<()>,
    ) -> Result<()> {
        let mut attributes = Vec::with_capacity(2);
        if let Some([x, y, z]) = self.cluster {
            let value = CUlaunchAttributeValue { clusterDim: Cluster { x, y, z } };
            attributes.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
        }
        if self.programmatic {
            let value = CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 };
            let id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes.push(attribute(id, value));
        }
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (self.grid, self.block);
        f(&CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: self.shared_bytes,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        })
    }
}

fn attribute(id: Id, value: CUlaunchAttributeValue) -> CUlaunchAttribute {
    CUlaunchAttribute { id, pad: [0; 4], value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_follow_the_shape() {
        let shape = Shape { cluster: Some([2, 1, 1]), programmatic: true, ..Shape::flat(4, 32) };
        let count = |shape: Shape| {
            let mut seen = 0;
            shape
                .with_config(std::ptr::null_mut(), |config| {
                    seen = config.numAttrs;
                    Ok(())
                })
                .unwrap();
            seen
        };
        assert_eq!((count(shape), count(Shape::flat(4, 32))), (2, 0));
        assert!(Shape::flat(0, 32).is_empty());
    }
}
