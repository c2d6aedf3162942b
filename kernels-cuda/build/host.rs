//! Kernels compiled for the host.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::image::{KEY_DIGITS, hex};
use crate::source::{Source, list, plain};
use crate::store;

/// The emulator's own files.
const PARTS: [&str; 4] = ["fibers", "copies", "products", "entry"];
const LIBRARY: &str = "libtandem_emu.a";

/// Compiles them with the emulator into a library that the crate links, unless the store has it.
pub(crate) fn compile(sources: &[Source], here: &Path, (store, out): (&Path, &Path)) {
    let kept = store.join(format!("emulator.{}.a", &key(sources, here)[..KEY_DIGITS]));
    if kept.is_file() {
        fs::copy(&kept, out.join(LIBRARY)).unwrap_or_else(|error| panic!("{kept:?}: {error}"));
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-lib=static=tandem_emu");
        println!("cargo:rustc-link-lib=stdc++");
        return;
    }
    build(sources, here, out);
    // Without it the next build compiles again.
    let _ = store::keep(&out.join(LIBRARY), &kept);
}

/// Folders of device headers: Hopper's, and those of plain kernels.
fn headers(here: &Path) -> [PathBuf; 2] {
    [here.join("kernels/device"), plain(here).join("device")]
}

/// What the library depends on.
fn key(sources: &[Source], here: &Path) -> String {
    let mut hash = Sha256::new();
    for name in ["CXX", "CXXFLAGS", "TARGET"] {
        println!("cargo:rerun-if-env-changed={name}");
        hash.update(std::env::var(name).unwrap_or_default());
        hash.update([0]);
    }
    let [own, plain] = headers(here);
    for folder in [here.join("emu"), own, plain, here.join("build")] {
        for file in list(&folder).iter().filter(|path| path.is_file()) {
            hash.update(fs::read(file).unwrap_or_else(|error| panic!("{file:?}: {error}")));
        }
    }
    sources.iter().for_each(|source| hash.update(&source.text));
    hex(&hash.finalize())
}

fn build(sources: &[Source], here: &Path, out: &Path) {
    let mut text = String::from("#include \"launch.h\"\n");
    let [own, plain] = headers(here);
    for path in list(&own).iter().chain(&list(&plain)) {
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
        .include(plain)
        .files(PARTS.map(|part| here.join(format!("emu/{part}.cpp"))))
        .file(kernels)
        .compile("tandem_emu");
}
