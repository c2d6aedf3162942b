//! Modules and launches, and a kernel that ships.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::bindings::*;
use crate::support::{
    allocate, alone, argument, call, can_load, download, function, launch, launch_bytes, load,
    object, ok, shipped, stream, upload,
};

#[test]
fn a_board_loads_objects_of_its_target() {
    if !can_load() {
        return;
    }
    let settings = [("TANDEM_SIM_DEVICES", "MI300X,MI355X")];
    alone("kernels::a_board_loads_objects_of_its_target", &settings, |hip| {
        let objects = ["gfx942", "gfx950"].map(|target| shipped("rows.embed", target));
        let try_load = |object: &[u8]| {
            let mut module = null_mut();
            let code = call!(hip, hipModuleLoadData(&mut module, object.as_ptr().cast()));
            (code, module)
        };
        for (device, own) in [(0, 0), (1, 1)] {
            ok!(hip, hipSetDevice(device));
            assert_eq!(try_load(&objects[1 - own]), (hipErrorNoBinaryForGpu, null_mut()));
            let (code, module) = try_load(&objects[own]);
            assert_eq!(code, hipSuccess);
            ok!(hip, hipModuleUnload(module));
            assert_eq!(call!(hip, hipModuleUnload(module)), hipErrorInvalidHandle);
        }
        assert_eq!(try_load(&[7; 64]).0, hipErrorInvalidImage);
        let mut cut = objects[1].clone();
        // A table of sections that no file has.
        cut[0x28..0x30].fill(0xff);
        assert_eq!(try_load(&cut).0, hipErrorInvalidImage);
        let nothing = call!(hip, hipModuleLoadData(&mut null_mut(), null_mut::<c_void>()));
        assert_eq!(nothing, hipErrorInvalidValue);
    });
}

#[test]
fn wrong_launches_do_not_begin() {
    if !can_load() {
        return;
    }
    let told = alone("kernels::wrong_launches_do_not_begin", &[], |hip| {
        let own = stream(hip);
        let module = load(hip, &object("faulty", "gfx942"));
        let mut missing = null_mut();
        let code = call!(hip, hipModuleGetFunction(&mut missing, module, c"nothing".as_ptr()));
        assert_eq!(code, hipErrorNotFound);
        let kernel = function(hip, module, "writes");
        let memory = allocate(hip, 256);
        let arguments = argument(memory).to_le_bytes();
        let sized = |bytes: &[u8]| launch_bytes(hip, kernel, [1, 64], own, bytes);
        assert_eq!(sized(&arguments[..7]), hipErrorInvalidValue);
        assert_eq!(sized(&[]), hipErrorInvalidValue);
        assert_eq!(sized(&[arguments, arguments, arguments].concat()), hipErrorInvalidValue);
        let shaped = |shape| launch_bytes(hip, kernel, shape, own, &arguments);
        assert_eq!(shaped([1, 0]), hipErrorInvalidConfiguration);
        assert_eq!(shaped([0, 64]), hipErrorInvalidConfiguration);
        assert_eq!(shaped([1, 128]), hipErrorInvalidConfiguration);
        assert_eq!(shaped([u32::MAX, 64]), hipErrorInvalidConfiguration);
        let mut parameters = [(&raw const memory).cast_mut().cast::<c_void>()];
        let general = |lds, parameters: *mut *mut c_void| {
            let end = &mut [std::ptr::without_provenance_mut(3)];
            let extra = if parameters.is_null() { end.as_mut_ptr() } else { null_mut() };
            let launch = hip.hipModuleLaunchKernel;
            // SAFETY: as in `call`.
            unsafe { launch(kernel, 1, 1, 1, 64, 1, 1, lds, own, parameters, extra) }
        };
        assert_eq!(general(0, parameters.as_mut_ptr()), hipErrorNotSupported);
        assert_eq!(general(0, null_mut()), hipErrorInvalidValue);
        let mut size = 8usize;
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(1),
            arguments.as_ptr().cast_mut().cast(),
            std::ptr::without_provenance_mut(2),
            (&raw mut size).cast(),
            std::ptr::without_provenance_mut(3),
        ];
        let launch = hip.hipModuleLaunchKernel;
        let (no, extra) = (null_mut(), extra.as_mut_ptr());
        // SAFETY: as in `call`.
        let code = unsafe { launch(kernel, 1, 1, 1, 64, 1, 1, 65 << 10, own, no, extra) };
        assert_eq!(code, hipErrorLaunchOutOfResources);
        ok!(hip, hipModuleUnload(module));
        assert_eq!(shaped([1, 64]), hipErrorInvalidHandle);
        // None of it reached the device.
        ok!(hip, hipStreamSynchronize(own));
    });
    if let Some(told) = told {
        assert!(told.contains("writes: 7 bytes of arguments, it takes 8"), "{told}");
        assert!(told.contains("array of parameters"), "{told}");
    }
}

#[test]
fn functions_tell_what_they_take() {
    if !can_load() {
        return;
    }
    alone("kernels::functions_tell_what_they_take", &[], |hip| {
        let module = load(hip, &object("groups", "gfx942"));
        let kernel = function(hip, module, "histogram");
        let tell = |attribute| {
            let mut value = -1;
            (call!(hip, hipFuncGetAttribute(&mut value, attribute, kernel)), value)
        };
        assert_eq!(tell(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), (hipSuccess, 256));
        assert_eq!(tell(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), (hipSuccess, 1024));
        assert_eq!(tell(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), (hipSuccess, 0));
        let (code, registers) = tell(HIP_FUNC_ATTRIBUTE_NUM_REGS);
        assert!(code == hipSuccess && (1..=512).contains(&registers));
        assert_eq!(tell(HIP_FUNC_ATTRIBUTE_PTX_VERSION).0, hipErrorInvalidValue);
    });
}

#[test]
fn a_launch_writes_what_it_is_to() {
    if !can_load() {
        return;
    }
    alone("kernels::a_launch_writes_what_it_is_to", &[], |hip| {
        let own = stream(hip);
        let x = upload(hip, &[0x0302_0100; 100]);
        ok!(hip, hipDeviceSynchronize());
        let counts = allocate(hip, 1024);
        let kernel = function(hip, load(hip, &object("groups", "gfx942")), "histogram");
        for _ in 0..4 {
            ok!(hip, hipMemsetAsync(counts, 0, 1024, own));
            let arguments = [argument(x), argument(counts), 400];
            assert_eq!(launch(hip, kernel, [4, 256], own, &arguments), hipSuccess);
            assert_eq!(download(hip, counts, 5, own), [100, 100, 100, 100, 0]);
        }
    });
}

const WIDTH: usize = 200;
const TOKENS: usize = 3;

fn bf16(x: f32) -> f32 {
    half::bf16::from_f32(x).to_f32()
}

/// Numbers as bf16, two a word.
fn words(values: &[f32]) -> Vec<u32> {
    let bits = |x: f32| u32::from(half::bf16::from_f32(x).to_bits());
    values.chunks(2).map(|pair| bits(pair[0]) | bits(pair[1]) << 16).collect()
}

/// The operator's definition, `w (x / sqrt(mean(x²) + eps))`, in the steps that its page gives.
fn normalised(x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
    // Sums of squares of these are exact in f64; the other steps are f32.
    let squares: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let mean = (squares / x.len() as f64) as f32 + eps;
    let rstd = (1.0 / f64::from(mean).sqrt()) as f32;
    x.iter().zip(weight).map(|(x, w)| w * (x * rstd)).collect()
}

#[test]
fn a_kernel_that_ships_gives_the_operators_bits() {
    if !can_load() {
        return;
    }
    let settings = [("TANDEM_SIM_DEVICES", "gfx942,gfx950")];
    alone("kernels::a_kernel_that_ships_gives_the_operators_bits", &settings, |hip| {
        let draw = |seed: usize, count: usize| -> Vec<f32> {
            let at = |i: usize| ((i * 7919 + seed * 104_729) % 2003) as f32 / 200.0 - 5.0;
            (0..count).map(|i| bf16(at(i))).collect()
        };
        let (x, weight, eps) = (draw(1, WIDTH * TOKENS), draw(2, WIDTH), 1e-6f32);
        let expected: Vec<f32> =
            x.chunks(WIDTH).flat_map(|row| normalised(row, &weight, eps)).collect();
        for (device, target) in [(0, "gfx942"), (1, "gfx950")] {
            ok!(hip, hipSetDevice(device));
            let own = stream(hip);
            let kernel =
                function(hip, load(hip, &shipped("norm.rms", target)), "norm_rms__portable");
            let (from, scale) = (upload(hip, &words(&x)), upload(hip, &words(&weight)));
            let to = allocate(hip, 2 * WIDTH * TOKENS);
            ok!(hip, hipDeviceSynchronize());
            let view = |pointer| [argument::<c_void>(pointer), 0, WIDTH as u64];
            let mut arguments = [view(from), view(scale), view(to)].concat();
            arguments.extend([WIDTH as u64, eps.to_bits().into(), TOKENS as u64]);
            for _schedule in 0..4 {
                ok!(hip, hipMemsetAsync(to, 0xff, (2 * WIDTH * TOKENS) as size_t, own));
                assert_eq!(launch(hip, kernel, [2, 128], own, &arguments), hipSuccess);
                let found = download(hip, to, WIDTH * TOKENS / 2, own);
                assert!(found == words(&expected), "{target}");
            }
        }
    });
}
