//! A kernel that ships, launched as the backend launches it.

use std::sync::Arc;

use tandem_gfxsim::{Access, CodeObject, Dispatch, LoadError, Memory, Schedule, launch};

use crate::support::{TARGETS, random};

const WIDTH: usize = 200;
const TOKENS: usize = 3;

fn bf16(x: f64) -> f32 {
    half::bf16::from_f32(x as f32).to_f32()
}

/// An operand: address of its codes, of its scales, and elements from row to row.
fn view(address: u64, stride: usize) -> Vec<u8> {
    [address, 0, stride as u64].iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| half::bf16::from_f32(*x).to_bits().to_le_bytes()).collect()
}

#[test]
fn rms_norm_is_that_of_the_operators_page() {
    let draw = |seed, count| -> Vec<f32> {
        random(seed).map(|x| bf16((x >> 44) as f64 / 1e5 - 5.0)).take(count).collect()
    };
    let (x, weight) = (draw(1, WIDTH * TOKENS), draw(2, WIDTH));
    for target in TARGETS {
        let path = format!("{}/../objects/{target}/norm.rms.hsaco", env!("CARGO_MANIFEST_DIR"));
        let object = match CodeObject::load(&std::fs::read(path).expect("the object")) {
            Ok(object) => Arc::new(object),
            Err(LoadError::NoDisassembler) => {
                println!("SKIPPED norm.rms: {}", LoadError::NoDisassembler);
                return;
            }
            Err(other) => panic!("{other}"),
        };
        for schedule in Schedule::four() {
            let mut memory = Memory::new();
            let module = memory.load(&object);
            let from = memory.allocate("x", &bytes(&x), Access::ReadOnly);
            let scale = memory.allocate("weight", &bytes(&weight), Access::ReadOnly);
            let to = memory.allocate("y", &[0xff; 2 * WIDTH * TOKENS], Access::ReadWrite);
            let mut arguments = [view(from, WIDTH), view(scale, WIDTH), view(to, WIDTH)].concat();
            arguments.extend((WIDTH as u64).to_le_bytes());
            arguments.extend([1e-6f32.to_le_bytes(), [0; 4]].concat());
            arguments.extend((TOKENS as u64).to_le_bytes());
            let dispatch = Dispatch {
                module: &module,
                kernel: "norm_rms__portable",
                grid: [2, 1, 1],
                block: [128, 1, 1],
                arguments: &arguments,
                dynamic_lds_bytes: 0,
            };
            launch(&memory, &dispatch, &schedule)
                .unwrap_or_else(|e| panic!("{target}: {schedule:?}: {e}"));
            let y = memory.read(to, 2 * (WIDTH * TOKENS) as u64).expect("y");
            for (token, row) in x.chunks(WIDTH).enumerate() {
                // Sums of squares of these are exact in f64; the other steps are f32.
                let squares: f64 = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
                let mean = (squares / WIDTH as f64) as f32 + 1e-6;
                let rstd = (1.0 / f64::from(mean).sqrt()) as f32;
                let expected: Vec<f32> =
                    row.iter().zip(&weight).map(|(x, w)| w * (x * rstd)).collect();
                assert_eq!(
                    y[2 * token * WIDTH..][..2 * WIDTH],
                    bytes(&expected),
                    "{target}: token {token}"
                );
            }
        }
    }
}
