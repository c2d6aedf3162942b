//! Every wait and every barrier of a compiled kernel, left out in turn: a fault, other results under some
//! schedule, or one of the few that are known to say nothing.

use std::sync::Arc;

use tandem_gfxsim::{CodeObject, LaunchError, Schedule};

use crate::support::{Argument, bytes, output, random, run_once};

/// Encodings of `s_waitcnt` and `s_barrier`, and of `s_nop 0`.
const WAIT: u32 = 0xbf8c_0000;
const BARRIER: u32 = 0xbf8a_0000;
const NOTHING: u32 = 0xbf80_0000;

/// A kernel to be tried, and whether each of its waits and barriers is needed.
struct Trial {
    object: &'static str,
    kernel: &'static str,
    size: [u32; 2],
    arguments: Vec<Argument>,
    /// Waits and barriers, and how many of each may be left out without a difference.
    waits: (usize, usize),
    barriers: (usize, usize),
}

/// Places of instructions in a function of the file whose upper half is `code`.
fn places(file: &[u8], kernel: &str, code: u32) -> Vec<usize> {
    use object::{Object, ObjectSection, ObjectSymbol};
    let elf = object::File::parse(file).expect("an ELF file");
    let symbol = elf.symbols().find(|s| s.name() == Ok(kernel)).expect("the kernel");
    let text = elf.section_by_name(".text").expect("code");
    let (offset, _) = text.file_range().expect("code in the file");
    let from = (symbol.address() - text.address() + offset) as usize;
    let word = |at: &usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| file[at + i]));
    (from..from + symbol.size() as usize)
        .step_by(4)
        .filter(|at| word(at) & 0xffff_0000 == code)
        .collect()
}

/// What a file's kernel does under the four schedules: none where it faults or they disagree.
fn outcome(file: &[u8], trial: &Trial) -> Option<Vec<Vec<u8>>> {
    let object = Arc::new(CodeObject::load(file).expect("a code object"));
    let mut results = Vec::new();
    for schedule in Schedule::four() {
        match run_once(&object, trial.kernel, trial.size, &trial.arguments, &schedule) {
            Ok((result, _)) => results.push(result),
            Err(LaunchError::Fault(_)) => return None,
            Err(other) => panic!("{}: {other}", trial.kernel),
        }
    }
    results.iter().all(|result| *result == results[0]).then(|| results.swap_remove(0))
}

/// Instructions of a kind in a kernel, and how many of them nothing depends on.
fn left_out(trial: &Trial, code: u32) -> (usize, usize) {
    let file = bytes(trial.object, "gfx942");
    let right = outcome(&file, trial).expect("a right kernel");
    let places = places(&file, trial.kernel, code);
    let is_redundant = |at: &&usize| {
        let mut file = file.clone();
        file[**at..**at + 4].copy_from_slice(&NOTHING.to_le_bytes());
        outcome(&file, trial).as_ref() == Some(&right)
    };
    (places.len(), places.iter().filter(is_redundant).count())
}

#[test]
fn every_wait_and_barrier_counts() {
    if crate::support::object("groups", "gfx942").is_none() {
        return;
    }
    let floats = random(1).flat_map(|x| ((x >> 40) as f32).to_le_bytes()).take(4 * 5000).collect();
    let trials = [
        Trial {
            object: "groups",
            kernel: "row_sums",
            size: [5, 256],
            arguments: vec![Argument::In(floats), output(40)],
            waits: (11, 0),
            barriers: (1, 0),
        },
        Trial {
            object: "groups",
            kernel: "histogram",
            size: [4, 256],
            arguments: vec![
                Argument::In(random(2).map(|x| x as u8).take(3001).collect()),
                Argument::Out(vec![0; 1024]),
                Argument::Number(3001),
            ],
            waits: (4, 0),
            barriers: (2, 0),
        },
        Trial {
            object: "faulty",
            kernel: "right",
            size: [1, 256],
            arguments: vec![Argument::In((0..2048).map(|at| at as u8).collect()), output(1024)],
            waits: (5, 0),
            barriers: (4, 1),
        },
    ];
    let found = trials.each_ref().map(|trial| (left_out(trial, WAIT), left_out(trial, BARRIER)));
    assert_eq!(found, trials.map(|trial| (trial.waits, trial.barriers)));
}
