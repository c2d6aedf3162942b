//! What the tests share: objects, launches under every schedule, numbers drawn from a seed.

use std::sync::Arc;

use tandem_gfxsim::{
    Access, CodeObject, Counters, Dispatch, FaultKind, LaunchError, LoadError, Memory, Module,
    Schedule, launch,
};

/// Both targets.
pub const TARGETS: [&str; 2] = ["gfx942", "gfx950"];

/// The bytes of a committed object.
pub fn bytes(name: &str, target: &str) -> Vec<u8> {
    let path = format!("{}/tests/objects/{name}.{target}.hsaco", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A committed object, or none where there is no disassembler.
pub fn object(name: &str, target: &str) -> Option<Arc<CodeObject>> {
    match CodeObject::load(&bytes(name, target)) {
        Ok(object) => Some(Arc::new(object)),
        Err(LoadError::NoDisassembler) => {
            println!("SKIPPED {name} on {target}: {}", LoadError::NoDisassembler);
            None
        }
        Err(other) => panic!("{name} on {target}: {other}"),
    }
}

/// An object that ships.
pub fn shipped(name: &str, target: &str) -> Vec<u8> {
    let path = format!("{}/../objects/{target}/{name}.hsaco", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Whether objects can be loaded here; told if not.
pub fn can_load() -> bool {
    object("faulty", "gfx942").is_some()
}

/// An argument of a kernel.
#[derive(Clone)]
pub enum Argument {
    /// A buffer that is only read.
    In(Vec<u8>),
    /// A buffer that is written; its bytes are part of the result.
    Out(Vec<u8>),
    /// A number of 32 bits.
    Number(u32),
}

/// The bytes of numbers.
pub fn input<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Argument {
    Argument::In(values.iter().flat_map(|x| bytes(*x)).collect())
}

/// A buffer to be written, filled with what no right result holds everywhere.
pub fn output(bytes: usize) -> Argument {
    Argument::Out(vec![0xa5; bytes])
}

/// The result of a launch: the buffers that it wrote, and its counters.
pub fn run_once(
    object: &Arc<CodeObject>,
    kernel: &str,
    [grid, block]: [u32; 2],
    arguments: &[Argument],
    schedule: &Schedule,
) -> Result<(Vec<Vec<u8>>, Counters), LaunchError> {
    let mut memory = Memory::new();
    let module: Module = memory.load(object);
    let mut packed: Vec<u8> = Vec::new();
    let mut written = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Number(x) => packed.extend(x.to_le_bytes()),
            Argument::In(bytes) | Argument::Out(bytes) => {
                let is_output = matches!(argument, Argument::Out(_));
                let access = if is_output { Access::ReadWrite } else { Access::ReadOnly };
                let address = memory.allocate("an argument", bytes, access);
                packed.resize(packed.len().next_multiple_of(8), 0);
                packed.extend(address.to_le_bytes());
                if is_output {
                    written.push(address);
                }
            }
        }
    }
    let (grid, block) = ([grid, 1, 1], [block, 1, 1]);
    let dispatch =
        Dispatch { module: &module, kernel, grid, block, arguments: &packed, dynamic_lds_bytes: 0 };
    let counters = launch(&memory, &dispatch, schedule)?;
    let contents = |at: u64| memory.read(at, memory.extent(at)?.1);
    Ok((written.into_iter().filter_map(contents).collect(), counters))
}

/// The buffers that a launch wrote, the same under every schedule.
pub fn run(
    object: &Arc<CodeObject>,
    kernel: &str,
    size: [u32; 2],
    arguments: &[Argument],
) -> Vec<Vec<u8>> {
    let mut results = Schedule::four().into_iter().map(|schedule| {
        run_once(object, kernel, size, arguments, &schedule)
            .unwrap_or_else(|e| panic!("{schedule:?}: {e}"))
            .0
    });
    let first = results.next().expect("four schedules");
    for other in results {
        assert!(first == other, "{kernel}: schedules disagree");
    }
    first
}

/// What a kernel does wrong under a schedule.
pub fn fault(
    object: &Arc<CodeObject>,
    kernel: &str,
    size: [u32; 2],
    arguments: &[Argument],
    schedule: &Schedule,
) -> Option<FaultKind> {
    match run_once(object, kernel, size, arguments, schedule) {
        Ok(_) => None,
        Err(LaunchError::Fault(fault)) => Some(fault.kind),
        Err(other) => panic!("{kernel}: {other}"),
    }
}

/// Words of a buffer.
pub fn words<T, const N: usize>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| from(*chunk)).collect()
}

/// Pseudo-random 64-bit numbers.
pub fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        // The generator that is known as splitmix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

/// Numbers of every size, and those at the edges of formats.
pub fn doubles(seed: u64, count: usize) -> Vec<f64> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        f64::from(f32::MAX),
        f64::from(f32::MIN_POSITIVE),
        1e-45,
        3.0,
        0.5,
        65519.9,
        65520.0,
        2.5,
        -3.5,
    ];
    random(seed)
        .enumerate()
        .map(|(at, bits)| match bits % 4 {
            0 => edges[at % edges.len()],
            1 => f64::from_bits(bits.rotate_left(17)),
            2 => f64::from(f32::from_bits((bits >> 20) as u32)),
            _ => (bits >> 11) as f64 / 1e12 - 4e3,
        })
        .take(count)
        .collect()
}
