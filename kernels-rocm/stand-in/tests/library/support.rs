//! What the tests share: the library in a process of a test's own, and calls of it.

use std::ffi::{CStr, CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::null_mut;

use crate::bindings::*;

/// Directions of copies.
pub const TO_DEVICE: hipMemcpyKind = 1;
pub const TO_HOST: hipMemcpyKind = 2;
pub const ON_DEVICE: hipMemcpyKind = 3;

/// Tells a process which test it is to run.
const ALONE: &str = "TANDEM_STAND_IN_TEST";

/// Calls a function of the library.
macro_rules! call {
    ($hip:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: what the pointers point at is alive in the test, and of the size that it says; what is wrong on
        // purpose is a handle or an address that the library looks up before it uses it.
        unsafe { ($hip.$name)($($argument),*) }
    };
}
pub(crate) use call;

/// Calls a function of the library that is to succeed.
macro_rules! ok {
    ($hip:expr, $name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(crate::support::call!($hip, $name($($argument),*)), hipSuccess, stringify!($name))
    };
}
pub(crate) use ok;

/// The library beside the test's executable, where the build puts it.
pub fn library() -> PathBuf {
    let folder = std::env::current_exe().expect("a test has a file");
    let path = folder.parent().expect("a file has a folder").join("libamdhip64.so");
    assert!(path.is_file(), "{} is not built", path.display());
    path
}

fn open() -> Hip {
    // SAFETY: the library is built of this package.
    unsafe { Hip::new(library()) }.expect("the library has every function of the bindings")
}

/// Runs a test in a process of its own, since devices keep their faults, with settings. There it is `body`; what it
/// wrote on stderr comes back.
pub fn alone(test: &str, settings: &[(&str, &str)], body: impl FnOnce(&Hip)) -> Option<String> {
    if std::env::var_os(ALONE).is_some() {
        body(&open());
        return None;
    }
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    for name in ["DEVICES", "SCHEDULE", "MEMORY_MIB", "REPORT"] {
        command.env_remove(format!("TANDEM_SIM_{name}"));
    }
    let output = command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, test)
        .envs(settings.iter().copied())
        .output()
        .expect("a test can be run");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}\n{told}");
    Some(told)
}

/// Whether code objects can be loaded here; told if not.
pub fn can_load() -> bool {
    let path = std::env::var("TANDEM_LLVM_OBJDUMP").ok();
    let names = ["llvm-objdump-22", "llvm-objdump-21", "llvm-objdump-20", "llvm-objdump"];
    let mut programs = path.iter().map(String::as_str).chain(names);
    let found = programs.any(|name| Command::new(name).arg("--version").output().is_ok());
    if !found {
        println!("SKIPPED: no llvm-objdump is installed");
    }
    found
}

/// Device memory.
pub fn allocate(hip: &Hip, bytes: usize) -> *mut c_void {
    let mut pointer = null_mut();
    ok!(hip, hipMalloc(&mut pointer, bytes as size_t));
    pointer
}

/// Pinned memory, as words.
pub fn pinned(hip: &Hip, words: usize) -> *mut u32 {
    let mut pointer = null_mut();
    ok!(hip, hipHostMalloc(&mut pointer, 4 * words as size_t, hipHostMallocMapped));
    pointer.cast()
}

/// A word of pinned memory at this moment.
pub fn word(pointer: *mut u32, at: usize) -> u32 {
    // SAFETY: pinned memory of the test, of more words.
    unsafe { pointer.add(at).read_volatile() }
}

/// Writes a word of pinned memory.
pub fn set_word(pointer: *mut u32, at: usize, value: u32) {
    // SAFETY: pinned memory of the test, of more words.
    unsafe { pointer.add(at).write_volatile(value) }
}

/// Device memory that holds words.
pub fn upload(hip: &Hip, words: &[u32]) -> *mut c_void {
    let (to, bytes) = (allocate(hip, 4 * words.len()), 4 * words.len() as size_t);
    ok!(hip, hipMemcpyAsync(to, words.as_ptr().cast(), bytes, TO_DEVICE, null_mut()));
    ok!(hip, hipStreamSynchronize(null_mut()));
    to
}

/// Words of device memory, once the stream has done its work.
pub fn download(hip: &Hip, from: *const c_void, words: usize, stream: hipStream_t) -> Vec<u32> {
    let mut to = vec![0; words];
    ok!(hip, hipMemcpyAsync(to.as_mut_ptr().cast(), from, 4 * words as size_t, TO_HOST, stream));
    to
}

pub fn stream(hip: &Hip) -> hipStream_t {
    let mut stream = null_mut();
    ok!(hip, hipStreamCreateWithFlags(&mut stream, hipStreamNonBlocking));
    stream
}

pub fn event(hip: &Hip, flags: u32) -> hipEvent_t {
    let mut event = null_mut();
    ok!(hip, hipEventCreateWithFlags(&mut event, flags));
    event
}

/// A committed object of the simulator's tests.
pub fn object(name: &str, target: &str) -> Vec<u8> {
    read(&format!("sim/tests/objects/{name}.{target}.hsaco"))
}

/// An object that ships.
pub fn shipped(name: &str, target: &str) -> Vec<u8> {
    read(&format!("objects/{target}/{name}.hsaco"))
}

fn read(path: &str) -> Vec<u8> {
    let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub fn load(hip: &Hip, object: &[u8]) -> hipModule_t {
    let mut module = null_mut();
    ok!(hip, hipModuleLoadData(&mut module, object.as_ptr().cast()));
    module
}

pub fn function(hip: &Hip, module: hipModule_t, name: &str) -> hipFunction_t {
    let (mut function, name) = (null_mut(), CString::new(name).expect("a name"));
    ok!(hip, hipModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// Launches with packed arguments; the code.
pub fn launch(
    hip: &Hip,
    function: hipFunction_t,
    [grid, block]: [u32; 2],
    stream: hipStream_t,
    arguments: &[u64],
) -> hipError_t {
    let bytes: Vec<u8> = arguments.iter().flat_map(|word| word.to_le_bytes()).collect();
    launch_bytes(hip, function, [grid, block], stream, &bytes)
}

/// The same with arguments of any size.
pub fn launch_bytes(
    hip: &Hip,
    function: hipFunction_t,
    [grid, block]: [u32; 2],
    stream: hipStream_t,
    arguments: &[u8],
) -> hipError_t {
    let mut size = arguments.len();
    let mut extra: [*mut c_void; 5] = [
        std::ptr::without_provenance_mut(1),
        arguments.as_ptr().cast_mut().cast(),
        std::ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        std::ptr::without_provenance_mut(3),
    ];
    call!(
        hip,
        hipModuleLaunchKernel(
            function,
            grid,
            1,
            1,
            block,
            1,
            1,
            0,
            stream,
            null_mut(),
            extra.as_mut_ptr()
        )
    )
}

/// An address as an argument.
pub fn argument<T>(pointer: *const T) -> u64 {
    pointer.addr() as u64
}

/// The words for a code.
pub fn meaning(hip: &Hip, code: hipError_t) -> String {
    let text = call!(hip, hipGetErrorString(code));
    assert!(!text.is_null());
    // SAFETY: a static string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
