//! Reaching into the operands of a launch.

use crate::conformance::operator;
use tandem_hal::num::bf16;
use tandem_hal::{Elem, Enc, Op, Result, Slot};
use tandem_reference::{Arithmetic, Slots, Tensor, TensorMut, Trespass};

/// The workspace of a launch.
pub type Scratch<'a> = &'a mut [u8];
/// What a launch may touch besides.
pub type Beyond<'a> = &'a mut Trespass;
/// The arithmetic under a fault.
pub type Run<'a, 'f> = &'a mut Arithmetic<'f>;

/// The place of an operand.
///
/// # Panics
/// When the operator has none of that name: faults name operands of their own operator.
pub fn place(op: &Op, name: &str) -> usize {
    let facts = operator::facts(op);
    let found = facts.operands.iter().position(|(n, ..)| *n == name);
    found.unwrap_or_else(|| panic!("{} has no operand {name}", op.id()))
}

/// An input.
///
/// # Panics
/// When it is an output.
pub fn input<'s, 'a>(op: &Op, slots: &'s Slots<'a>, name: &str) -> &'s Tensor<'a> {
    match &slots[place(op, name)] {
        Slot::In(tensor) => tensor,
        Slot::Out(_) => panic!("{name} is written"),
    }
}

/// An output.
///
/// # Panics
/// When it is an input.
pub fn output<'s, 'a>(op: &Op, slots: &'s mut Slots<'a>, name: &str) -> &'s mut TensorMut<'a> {
    match &mut slots[place(op, name)] {
        Slot::Out(tensor) => tensor,
        Slot::In(_) => panic!("{name} is read only"),
    }
}

/// Run with one input's bytes changed; the input itself stays.
///
/// # Errors
/// What the arithmetic returns.
pub fn with_bytes(
    op: &Op,
    slots: &mut Slots<'_>,
    name: &str,
    run: &mut Arithmetic<'_>,
    edit: impl FnOnce(&mut [u8], &mut [u8]),
) -> Result<()> {
    let (at, tensor) = (place(op, name), input(op, slots, name));
    let (enc, shape) = (operator::facts(op).operands[at].2.enc, tensor.shape().to_vec());
    let (mut codes, mut scales) = tensor.to_dense();
    if tensor.is_empty() {
        return run(slots);
    }
    edit(&mut codes, &mut scales);
    let mut again: Slots<'_> = vec![];
    for (i, slot) in slots.iter_mut().enumerate() {
        again.push(match slot {
            _ if i == at => Slot::In(Tensor::dense(enc, &shape, &codes, &scales)),
            Slot::In(tensor) => Slot::In(tensor.clone()),
            Slot::Out(tensor) => Slot::Out(tensor.reborrow()),
        });
    }
    run(&mut again)
}

/// Run with one input's integers changed.
///
/// # Errors
/// What the arithmetic returns.
pub fn with_ints(
    op: &Op,
    slots: &mut Slots<'_>,
    name: &str,
    run: &mut Arithmetic<'_>,
    edit: impl Fn(i32) -> i32,
) -> Result<()> {
    with_bytes(op, slots, name, run, |codes, _| {
        for word in codes.as_chunks_mut::<4>().0 {
            *word = edit(i32::from_le_bytes(*word)).to_le_bytes();
        }
    })
}

/// Run with one input's real numbers changed.
///
/// # Errors
/// What the arithmetic returns.
pub fn with_reals(
    op: &Op,
    slots: &mut Slots<'_>,
    name: &str,
    run: &mut Arithmetic<'_>,
    edit: impl Fn(f32) -> f32,
) -> Result<()> {
    let enc = operator::facts(op).operands[place(op, name)].2.enc;
    with_bytes(op, slots, name, run, |codes, _| reals(enc, codes, edit))
}

/// Change plain real numbers in place.
pub fn reals(enc: Enc, codes: &mut [u8], edit: impl Fn(f32) -> f32) {
    match enc {
        Enc::Plain(Elem::Bf16) => {
            for word in codes.as_chunks_mut::<2>().0 {
                let x = bf16::to_f32(u16::from_le_bytes(*word));
                *word = bf16::from_f32(edit(x)).to_le_bytes();
            }
        }
        _ => {
            for word in codes.as_chunks_mut::<4>().0 {
                *word = edit(f32::from_le_bytes(*word)).to_le_bytes();
            }
        }
    }
}

/// Change each row of an output; gaps between rows stay.
pub fn rows(tensor: &mut TensorMut<'_>, mut edit: impl FnMut(usize, &mut [u8])) {
    for (r, bytes) in tensor.split_rows() {
        edit(r, bytes);
    }
}

/// Flip a bit of one code of the first output row.
pub fn touch(op: &Op, slots: &mut Slots<'_>, name: &str, mask: u8) {
    rows(output(op, slots, name), |r, bytes| {
        if let (0, Some(code)) = (r, bytes.first_mut()) {
            *code ^= mask;
        }
    });
}
