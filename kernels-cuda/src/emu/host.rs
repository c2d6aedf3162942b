//! Launches on the host.

#![allow(unsafe_code)]

use crate::{
    driver::{Argument, Shape, TensorMap, Tile, ViewArgument},
    launcher::{Launcher, Target},
    rows::{self, Rows},
};
use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::{Mutex, PoisonError},
};
use tandem_hal::{DeviceInfo, Dim, Error, Extents, Facts, Numerics, Options, Result, Slot, Want};
use tandem_reference::{Arithmetic, Slots};

unsafe extern "C" {
    fn tandem_emu_launch(
        name: *const c_char,
        grid: *const u32,
        extent: *const u32,
        shared_bytes: u32,
        cluster: u32,
        values: *mut *mut c_void,
        sizes: *const usize,
        count: usize,
        seed: u64,
    ) -> c_int;
    fn tandem_emu_message() -> *const c_char;
    #[cfg(test)]
    fn tandem_emu_sites() -> *const c_char;
    #[cfg(test)]
    fn tandem_emu_plant(site: *const c_char);
}

/// The emulator is one machine: one launch at a time.
static MACHINE: Mutex<()> = Mutex::new(());

thread_local! {
    /// Launches of this thread so far. They seed schedules, so that a thread that does the same again sees the same
    /// schedules, whatever others launch meanwhile.
    static LAUNCHES: Cell<u64> = const { Cell::new(0) };
}

/// Launches of this thread so far.
#[cfg(test)]
pub(super) fn launches() -> u64 {
    LAUNCHES.get()
}

#[cfg(test)]
thread_local! {
    /// The wait or fence that launches of this thread leave out.
    static LEFT_OUT: std::cell::RefCell<Option<CString>> = const { std::cell::RefCell::new(None) };
}

/// Waits and fences of a source that launches so far came by, as the emulator names them.
#[cfg(test)]
pub(super) fn sites(source: &str) -> Vec<String> {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a string that stays until the next call, which waits for the lock.
    let text = unsafe { CStr::from_ptr(tandem_emu_sites()) };
    let text = text.to_string_lossy();
    text.lines().filter(|line| line.contains(source)).map(str::to_owned).collect()
}

/// What `f` returns when launches of this thread leave out a wait or fence.
#[cfg(test)]
pub(super) fn leaving_out<T>(site: &str, f: impl FnOnce() -> T) -> T {
    LEFT_OUT.set(CString::new(site).ok());
    let result = f();
    LEFT_OUT.set(None);
    result
}

/// The emulator as a target.
pub(super) struct OnHost;

impl Target for OnHost {
    // Few, so that blocks walk over several tiles.
    fn multiprocessors(&self) -> Result<u64> {
        Ok(2)
    }

    fn launch(&self, kernel: &str, shape: &Shape, arguments: &[Argument<'_>]) -> Result<()> {
        let refused = |meaning: String| Error::Driver { call: "emulator", code: 1, meaning };
        let name = CString::new(kernel).map_err(|e| refused(e.to_string()))?;
        let places = arguments.iter().map(Argument::place);
        let (mut values, sizes): (Vec<*mut c_void>, Vec<usize>) =
            places.map(|(place, bytes)| (place.cast_mut(), bytes)).unzip();
        let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        LAUNCHES.set(LAUNCHES.get() + 1);
        let [cluster, 1, 1] = shape.cluster.unwrap_or([1; 3]) else {
            return Err(refused(format!("{kernel} has clusters along another axis than x")));
        };
        if !shape.grid[0].is_multiple_of(cluster) {
            return Err(refused(format!("{kernel} has a grid of other than whole clusters")));
        }
        // SAFETY: the emulator copies the name; it is of one thread while the lock is held.
        #[cfg(test)]
        LEFT_OUT.with_borrow(|site| unsafe {
            tandem_emu_plant(site.as_ref().map_or(std::ptr::null(), |site| site.as_ptr()));
        });
        // SAFETY: arrays have three entries, or as many as there are arguments, whose sizes the emulator
        // compares with the kernel's. The addresses among them are those of tensors that are borrowed for
        // this launch, of the extents that the other arguments tell.
        let outcome = unsafe {
            tandem_emu_launch(
                name.as_ptr(),
                shape.grid.as_ptr(),
                shape.block.as_ptr(),
                shape.shared_bytes,
                cluster,
                values.as_mut_ptr(),
                sizes.as_ptr(),
                sizes.len(),
                LAUNCHES.get(),
            )
        };
        match outcome {
            0 => Ok(()),
            1 => Err(refused(format!("no kernel {kernel}"))),
            2 => Err(refused(format!("{kernel} takes arguments of other sizes than {sizes:?}"))),
            3 => Err(refused(format!("{kernel} waits for what never comes"))),
            _ => {
                // SAFETY: a string that stays until the next launch, which waits for the lock held here.
                let why = unsafe { CStr::from_ptr(tandem_emu_message()) };
                Err(refused(format!("{kernel}: {}", why.to_string_lossy())))
            }
        }
    }

    fn tensor_map(&self, address: u64, tile: &Tile) -> Result<TensorMap> {
        Ok(TensorMap::emulated(address, tile))
    }
}

/// Run the row chosen for a descriptor in place of the reference's arithmetic, if there is one.
///
/// # Errors
/// What the emulator or the reference returns.
pub(super) fn run<D: Rows>(
    d: &D,
    slots: &mut Slots<'_>,
    (info, options): (&DeviceInfo, &Options),
    workspace: &mut [u8],
    reference: &mut Arithmetic<'_>,
) -> Result<()> {
    let extents = extents(d, slots);
    let want = Want { numerics: Numerics::Free, limits: extents };
    let Ok(ladder) = rows::choose(d, info, &want, options) else {
        return reference(slots);
    };
    let rows = extents.at(D::ROWS);
    let row = ladder.at(rows).ok_or_else(|| Error::Unsupported {
        op: D::ID.into(),
        reason: format!("the row forced for it does not take {rows} rows"),
    })?;
    let workspace = ViewArgument {
        codes: workspace.as_mut_ptr().expose_provenance() as u64,
        scales: 0,
        stride: workspace.len() as u64,
    };
    let on = Launcher { target: &OnHost, extents: &extents, workspace };
    rows::launch(d, row, slots.iter_mut().map(argument), &on)
}

/// The extents that the operands of a launch have.
fn extents<D: Rows>(d: &D, slots: &Slots<'_>) -> Extents {
    let mut extents = Extents::default();
    for ((_, _, operand), slot) in Facts::of(d).operands.iter().zip(slots) {
        let shape = match slot {
            Slot::In(tensor) => tensor.shape(),
            Slot::Out(tensor) => tensor.shape(),
        };
        for (dim, n) in operand.dims.iter().zip(shape) {
            if let Dim::Of(sym) = dim {
                extents.set(*sym, *n);
            }
        }
    }
    extents
}

fn argument(
    slot: &mut Slot<tandem_reference::Tensor<'_>, tandem_reference::TensorMut<'_>>,
) -> ViewArgument {
    let (codes, scales, stride, empty) = match slot {
        Slot::In(tensor) => {
            let (codes, scales) = tensor.bytes();
            (codes.as_ptr(), scales.as_ptr(), tensor.stride(), tensor.is_empty())
        }
        Slot::Out(tensor) => {
            let (stride, empty) = (tensor.stride(), tensor.is_empty());
            let (codes, scales) = tensor.bytes_mut();
            (codes.as_mut_ptr().cast_const(), scales.as_mut_ptr().cast_const(), stride, empty)
        }
    };
    if empty {
        return ViewArgument::default();
    }
    ViewArgument {
        codes: codes.expose_provenance() as u64,
        scales: scales.expose_provenance() as u64,
        stride: stride as u64,
    }
}
