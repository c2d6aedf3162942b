//! How a kernel is launched.

use super::{Result, TensorMap};
use cudarc::driver::sys::{
    CUlaunchAttribute, CUlaunchAttributeID as Id, CUlaunchAttributeValue,
    CUlaunchAttributeValue_union__bindgen_ty_1 as Cluster, CUlaunchConfig, CUstream,
};
use std::ffi::c_void;

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

/// An operand as kernels get it: `View` of the device headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ViewArgument {
    /// First byte of the codes; 0 for an operand without elements.
    pub codes: u64,
    /// First byte of the scales.
    pub scales: u64,
    /// Units from row to row of the last axis.
    pub stride: u64,
}

/// How a cache's entries lie and what they hold: `Entry` of the device headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct EntryArgument {
    /// Arrangement, and rule of its scales.
    pub form: u32,
    /// See `form`.
    pub rule: u32,
    /// Elements under a scale.
    pub block: u32,
    /// Elements.
    pub width: u32,
    /// Entries of a page; larger pages than addresses reach are all alike.
    pub page_entries: u32,
    /// Bytes.
    pub bytes: u64,
    /// Entries of the cache.
    pub entries: u64,
}

/// Numbers that a launch's rows share: `Frequencies` of the device headers.
pub type TableArgument = [f32; 256];

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// An operand.
    View(ViewArgument),
    /// A size or an address.
    U64(u64),
    /// A choice.
    U32(u32),
    /// A signed coordinate.
    I32(i32),
    /// A number.
    F32(f32),
    /// The entries of a cache.
    Entry(EntryArgument),
    /// Numbers made on the host.
    Table(&'a TableArgument),
    /// A tensor map.
    Map(&'a TensorMap),
    /// Numbers that the kernel takes by value, as many as it says.
    Words(&'a [u64]),
}

impl Argument<'_> {
    /// Where its bytes lie, and how many there are.
    pub(crate) fn place(&self) -> (*const c_void, usize) {
        fn of<T>(value: &T) -> (*const c_void, usize) {
            (std::ptr::from_ref(value).cast(), size_of::<T>())
        }
        match self {
            Argument::View(value) => of(value),
            Argument::U64(value) => of(value),
            Argument::U32(value) => of(value),
            Argument::I32(value) => of(value),
            Argument::F32(value) => of(value),
            Argument::Entry(value) => of(value),
            Argument::Table(value) => of(*value),
            Argument::Map(value) => of(*value),
            Argument::Words(value) => (value.as_ptr().cast(), size_of_val(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_sizes_of_the_device_headers() {
        let view = Argument::View(ViewArgument::default());
        let sizes = [view, Argument::U64(0), Argument::U32(0), Argument::F32(0.0)];
        assert_eq!(sizes.map(|a| a.place().1), [24, 8, 4, 4]);
        assert_eq!(size_of::<TensorMap>(), 128);
    }

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
