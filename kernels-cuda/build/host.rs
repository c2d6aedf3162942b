//! Kernels compiled for the host.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::source::Source;

/// Compiles them with the emulator into a library that the crate links.
pub(crate) fn compile(sources: &[Source], here: &Path, out: &Path) {
    let mut text = String::from("#include \"launch.h\"\n");
    for header in fs::read_dir(here.join("kernels/device")).expect("the headers' folder") {
        let path = header.expect("a folder that lists").path();
        writeln!(text, "#include {path:?}").expect("strings grow");
    }
    let mut table = String::new();
    for (i, source) in sources.iter().filter(|source| source.runs_on_host()).enumerate() {
        // Names within a source are its own.
        writeln!(text, "namespace source_{i} {{\n#include {:?}\n}}", source.path)
            .expect("strings grow");
        for kernel in source.kernels() {
            writeln!(table, "    entry<source_{i}::{kernel}>({kernel:?}),").expect("strings grow");
        }
    }
    writeln!(
        text,
        "namespace emu {{\nextern const Kernel KERNELS[] = {{\n{table}    {{nullptr, nullptr, nullptr}},\n}};\n}}"
    )
    .expect("strings grow");
    let kernels = out.join("kernels.cpp");
    fs::write(&kernels, text).unwrap_or_else(|error| panic!("cannot write {kernels:?}: {error}"));
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .opt_level(2)
        // A product and a sum are rounded one after the other, as on the device.
        .flag("-ffp-contract=off")
        .flag("-fno-strict-aliasing")
        // Tensor maps are passed by value; nothing was compiled by so old a compiler.
        .flag("-Wno-psabi")
        .warnings(false)
        .include(here.join("emu"))
        .files(
            ["fibers", "copies", "products", "entry"]
                .map(|part| here.join(format!("emu/{part}.cpp"))),
        )
        .file(kernels)
        .compile("tandem_emu");
}
