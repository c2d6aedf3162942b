//! The elementary functions of the device, by the host's compiler: sums, products and fused steps have the same bits
//! there.

#![allow(unsafe_code)]

use std::path::Path;
use std::process::Command;

type Function = extern "C" fn(f64) -> f64;

/// The functions by name, from a library of them; none without a compiler.
fn compiled(folder: &Path) -> Option<libloading::Library> {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/device/elementary.h");
    let source = format!(
        "#define DEVICE static inline\n\
         namespace device {{\n#include \"{header}\"\n}}\n\
         extern \"C\" double device_exp(double x) {{ return device::exp(x); }}\n\
         extern \"C\" double device_log(double x) {{ return device::log(x); }}\n\
         extern \"C\" double device_log1p(double x) {{ return device::log1p(x); }}\n\
         extern \"C\" double device_erfc(double x) {{ return device::erfc(x); }}\n"
    );
    let (from, to) = (folder.join("elementary.cpp"), folder.join("elementary.so"));
    std::fs::write(&from, source).unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o"]);
    match compiler.arg(&to).arg(&from).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            println!("SKIPPED rocm: no C++ compiler: {error}");
            return None;
        }
    }
    // SAFETY: compiled just now, without initialisers.
    Some(unsafe { libloading::Library::new(&to) }.unwrap())
}

fn function(library: &libloading::Library, name: &str) -> Function {
    // SAFETY: the source above gives it this type.
    *unsafe { library.get::<Function>(name.as_bytes()) }.unwrap()
}

/// How far apart two numbers are, in last places of the second.
fn units(x: f64, exact: f64) -> f64 {
    let place = exact.abs().next_up() - exact.abs();
    if x.to_bits() == exact.to_bits() { 0.0 } else { (x - exact).abs() / place }
}

#[test]
fn functions_are_within_units_of_the_last_place() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compiled(folder.path()) else { return };
    type Case = (&'static str, fn(f64) -> f64, f64, &'static [(f64, f64)]);
    // What the header says of itself, and one unit of the other side's.
    let cases: [Case; 4] = [
        ("device_exp", libm::exp, 3.0, &[(-1.0, 1.0), (-745.0, 709.7), (-1e-9, 1e-9)]),
        ("device_log", libm::log, 3.0, &[(0.5, 2.0), (1e-320, 1e-300), (1.0, 1e300)]),
        ("device_log1p", libm::log1p, 3.0, &[(0.0, 1e-9), (0.0, 3.0), (0.0, 1e9)]),
        ("device_erfc", libm::erfc, 5.0, &[(-7.0, 0.8), (0.7, 6.0), (5.0, 26.5)]),
    ];
    for (name, exact, most, ranges) in cases {
        let device = function(&library, name);
        for (from, to) in ranges {
            for i in 0..20_000 {
                let x = from + (to - from) * f64::from(i) / 20_000.0;
                let (got, wanted) = (device(x), exact(x));
                assert!(units(got, wanted) <= most, "{name}({x:e}) is {got:e}, not {wanted:e}");
            }
        }
    }
}

#[test]
fn edges_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compiled(folder.path()) else { return };
    let infinity = f64::INFINITY;
    let cases: [(&str, &[(f64, f64)]); 4] = [
        ("device_exp", &[(0.0, 1.0), (infinity, infinity), (-infinity, 0.0), (710.0, infinity)]),
        ("device_log", &[(1.0, 0.0), (0.0, -infinity), (-0.0, -infinity), (infinity, infinity)]),
        ("device_log1p", &[(0.0, 0.0), (1e-300, 1e-300), (infinity, infinity)]),
        ("device_erfc", &[(0.0, 1.0), (infinity, 0.0), (-infinity, 2.0), (30.0, 0.0)]),
    ];
    for (name, edges) in cases {
        let device = function(&library, name);
        for (x, wanted) in edges {
            assert_eq!(device(*x).to_bits(), wanted.to_bits(), "{name}({x})");
        }
        assert!(device(f64::NAN).is_nan(), "{name}");
    }
    assert!(function(&library, "device_log")(-1.0).is_nan());
}
