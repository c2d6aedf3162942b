//! Operations of ours as Triton's compiler makes them for both targets, beside our own kernels and sums in f64. What a
//! matrix unit takes from which lane and how lanes exchange is Triton's word here, whose objects run on boards.

mod linears;
mod loops;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use tandem_gfxsim::{Access, CodeObject, Counters, Dispatch, LoadError, Memory, Schedule, launch};

use crate::support::shipped;

/// Where `cargo xtask fetch triton` puts a Python that has the compiler.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/fetched/triton/bin/python");

/// Threads of a block of Triton's kernels, as `tests/triton/kernels.py` has it.
const THREADS: u32 = 256;

/// The folder of Triton's objects, made once; why not, if there is no compiler.
static OBJECTS: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    if !Path::new(PYTHON).exists() {
        return Err(format!("no {PYTHON}; run `cargo xtask fetch triton`"));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("triton");
    fs::create_dir_all(&folder).expect("cargo's folder can be written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/triton/kernels.py");
    let mut compiler = Command::new(PYTHON);
    // Objects of an earlier run are made anew.
    compiler.arg(script).arg(&folder).env("TRITON_ALWAYS_COMPILE", "1");
    let output = compiler.env("TRITON_CACHE_DIR", folder.join("cache")).output();
    let output = output.unwrap_or_else(|error| panic!("{PYTHON}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(folder)
});

/// A kernel that can be launched.
struct Kernel {
    object: Arc<CodeObject>,
    name: String,
    threads: u32,
    lds_bytes: u32,
}

/// The object, or none where there is no disassembler.
fn load(name: &str, bytes: &[u8]) -> Option<Arc<CodeObject>> {
    match CodeObject::load(bytes) {
        Ok(object) => Some(Arc::new(object)),
        Err(LoadError::NoDisassembler) => {
            println!("SKIPPED triton: {}", LoadError::NoDisassembler);
            None
        }
        Err(other) => panic!("{name}: {other}"),
    }
}

/// Triton's kernel for an operation, or none where it cannot be made; told if not.
fn triton(name: &str, target: &str) -> Option<Kernel> {
    let folder = match &*OBJECTS {
        Ok(folder) => folder,
        Err(why) => {
            println!("SKIPPED triton: {why}");
            return None;
        }
    };
    let path = folder.join(format!("{name}.{target}.hsaco"));
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let lds = fs::read_to_string(path.with_extension("lds")).expect("the size of its LDS");
    let object = load(name, &bytes)?;
    let name = object.kernels().next().expect("a kernel").to_owned();
    let lds_bytes = lds.parse().expect("a number");
    Some(Kernel { object, name, threads: THREADS, lds_bytes })
}

/// A kernel that ships.
fn ours(object: &str, kernel: &str, target: &str, threads: u32) -> Option<Kernel> {
    let object = load(object, &shipped(object, target))?;
    Some(Kernel { object, name: kernel.into(), threads, lds_bytes: 0 })
}

/// An argument of a launch.
#[derive(Clone, Copy)]
enum Argument<'a> {
    /// The address of a buffer that is only read.
    In(&'a [u8]),
    /// The address of a buffer of so many bytes, the launch's result.
    Out(usize),
    /// As kernels of ours have a buffer: codes, scales and units from row to row.
    View(&'a [u8], &'a [u8], u64),
    /// The same of the result.
    OutView(usize, u64),
    U32(u32),
    U64(u64),
    F32(f32),
}

impl Kernel {
    /// The bytes that a launch writes, and its counters.
    fn run(
        &self,
        grid: [u32; 2],
        arguments: &[Argument<'_>],
        schedule: &Schedule,
    ) -> (Vec<u8>, Counters) {
        let mut memory = Memory::new();
        let module = memory.load(&self.object);
        let mut packed: Vec<u8> = vec![];
        let mut result = 0;
        for argument in arguments {
            let mut read = |bytes: &[u8]| memory.allocate("an operand", bytes, Access::ReadOnly);
            let words = match *argument {
                Argument::In(bytes) => vec![read(bytes)],
                Argument::View(codes, scales, stride) => vec![read(codes), read(scales), stride],
                Argument::Out(bytes) | Argument::OutView(bytes, _) => {
                    result = memory.allocate("the result", &vec![0xa5; bytes], Access::ReadWrite);
                    match *argument {
                        Argument::OutView(_, stride) => vec![result, 0, stride],
                        _ => vec![result],
                    }
                }
                Argument::U64(x) => vec![x],
                Argument::U32(x) => {
                    packed.extend(x.to_le_bytes());
                    continue;
                }
                Argument::F32(x) => {
                    packed.extend(x.to_le_bytes());
                    continue;
                }
            };
            packed.resize(packed.len().next_multiple_of(8), 0);
            packed.extend(words.into_iter().flat_map(u64::to_le_bytes));
        }
        // Triton adds addresses of scratch that its kernels have none of.
        let all = self.object.argument_bytes(&self.name).expect("the kernel");
        packed.resize((all as usize).max(packed.len()), 0);
        let dispatch = Dispatch {
            module: &module,
            kernel: &self.name,
            grid: [grid[0], grid[1], 1],
            block: [self.threads, 1, 1],
            arguments: &packed,
            dynamic_lds_bytes: self.lds_bytes,
        };
        let counters = launch(&memory, &dispatch, schedule)
            .unwrap_or_else(|error| panic!("{}: {schedule:?}: {error}", self.name));
        let bytes = memory.extent(result).expect("the result").1;
        (memory.read(result, bytes).expect("the result"), counters)
    }

    /// What every schedule writes.
    fn same_under_all(&self, grid: [u32; 2], arguments: &[Argument<'_>]) -> Vec<u8> {
        let mut results =
            Schedule::four().into_iter().map(|schedule| self.run(grid, arguments, &schedule).0);
        let first = results.next().expect("four schedules");
        assert!(results.all(|other| other == first), "{}: schedules disagree", self.name);
        first
    }
}
