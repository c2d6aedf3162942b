//! A launch as a fault sees it, and reaching into its operands.

use crate::conformance::operator;
use tandem_hal::num::bf16;
use tandem_hal::{Elem, Enc, Op, Result, Slot};
use tandem_reference::{Arithmetic, Slots, Tensor, TensorMut, Trespass};

/// A launch about to run. Faults name operands of their own operator: another name panics.
pub struct Launch<'l, 's, 'a> {
    /// The descriptor.
    pub op: &'l Op,
    /// The operands.
    pub slots: &'l mut Slots<'s>,
    /// The workspace.
    pub scratch: &'l mut [u8],
    /// What the launch may touch besides.
    pub beyond: &'l mut Trespass,
    /// What it computes.
    pub arithmetic: &'l mut Arithmetic<'a>,
}

impl<'s> Launch<'_, 's, '_> {
    /// Compute.
    ///
    /// # Errors
    /// What the arithmetic returns.
    pub fn run(&mut self) -> Result<()> {
        (self.arithmetic)(self.slots)
    }

    /// The place of an operand.
    pub fn place(&self, name: &str) -> usize {
        let facts = operator::facts(self.op);
        let found = facts.operands.iter().position(|(n, ..)| *n == name);
        found.unwrap_or_else(|| panic!("{} has no operand {name}", self.op.id()))
    }

    /// An input.
    ///
    /// # Panics
    /// When it is an output.
    pub fn input(&self, name: &str) -> &Tensor<'s> {
        match &self.slots[self.place(name)] {
            Slot::In(tensor) => tensor,
            Slot::Out(_) => panic!("{name} is written"),
        }
    }

    /// An output.
    ///
    /// # Panics
    /// When it is an input.
    pub fn output(&mut self, name: &str) -> &mut TensorMut<'s> {
        let at = self.place(name);
        match &mut self.slots[at] {
            Slot::Out(tensor) => tensor,
            Slot::In(_) => panic!("{name} is read only"),
        }
    }

    /// Compute with one input's bytes changed; the input itself stays.
    ///
    /// # Errors
    /// What the arithmetic returns.
    pub fn with_bytes(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut [u8], &mut [u8]),
    ) -> Result<()> {
        let (at, tensor) = (self.place(name), self.input(name));
        let (enc, shape) = (self.enc(name), tensor.shape().to_vec());
        let (mut codes, mut scales) = tensor.to_dense();
        if tensor.is_empty() {
            return self.run();
        }
        edit(&mut codes, &mut scales);
        let mut again: Slots<'_> = vec![];
        for (i, slot) in self.slots.iter_mut().enumerate() {
            again.push(match slot {
                _ if i == at => Slot::In(Tensor::dense(enc, &shape, &codes, &scales)),
                Slot::In(tensor) => Slot::In(tensor.clone()),
                Slot::Out(tensor) => Slot::Out(tensor.reborrow()),
            });
        }
        (self.arithmetic)(&mut again)
    }

    /// Compute with one input's integers changed.
    ///
    /// # Errors
    /// What the arithmetic returns.
    pub fn with_ints(&mut self, name: &str, edit: impl Fn(i32) -> i32) -> Result<()> {
        self.with_bytes(name, |codes, _| {
            for word in codes.as_chunks_mut::<4>().0 {
                *word = edit(i32::from_le_bytes(*word)).to_le_bytes();
            }
        })
    }

    /// Compute with one input's real numbers changed.
    ///
    /// # Errors
    /// What the arithmetic returns.
    pub fn with_reals(&mut self, name: &str, edit: impl Fn(f32) -> f32) -> Result<()> {
        let enc = self.enc(name);
        self.with_bytes(name, |codes, _| reals(enc, codes, edit))
    }

    /// Flip a bit of one code of the first output row.
    pub fn touch(&mut self, name: &str, mask: u8) {
        rows(self.output(name), |r, bytes| {
            if let (0, Some(code)) = (r, bytes.first_mut()) {
                *code ^= mask;
            }
        });
    }

    fn enc(&self, name: &str) -> Enc {
        operator::facts(self.op).operands[self.place(name)].2.enc
    }
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
