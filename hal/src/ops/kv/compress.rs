//! `kv.compress`: gated pooling of a group of tokens into one latent.
//!
//! A group's tokens left `[value | gate]` rows (f32, `width` each) in the open-group cache. Per
//! channel c: `w = softmax over the group of gate[.,c]` (the maximum subtracted),
//! `y[t,c] = bf(Σ_i w_i value_i[c])`, members in order of position.
//!
//! A row whose list has a -1 (or an address outside) is not the last of its group: it gives zeros.
//! Roundings: weights fp32-class (exponentials and their sum f64 in the reference), rounded to fp32,
//! products and sums in fp32 steps, one to bf16; the norm that follows is its own operator.
//! NaN stays in its channel. Rows see only themselves and the entries they name.
//! Cost: bytes. Used by the ratio-2 compressors; a ratio of 1 needs no pooling. Groups do not
//! overlap. Source: model report 3.6.

use crate::Cache;
use crate::ops::prelude::*;

io! {
    /// Operands of [`Compress`].
    pub struct CompressIo {
        /// `[open pages, page_entries]` records of `2 width` f32.
        open: In,
        /// `[tokens, ratio]` i32 addresses of the group's members, oldest first.
        members: In,
        /// `[tokens, width]` bf16.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Compress {
        /// Cache of the open groups, plain f32.
        pub open: Cache,
        /// Tokens of a group.
        pub ratio: u64,
    }
}

impl Operator for Compress {
    const ID: &'static str = "kv.compress";
    type Io<I, O> = CompressIo<I, O>;
    fn check(&self) -> Result<()> {
        self.open.check(Self::ID)?;
        require(Self::ID, self.open.record.form == Form::F32, "open groups are stored as f32")?;
        require(Self::ID, self.open.width().is_multiple_of(2), "an entry is [value | gate]")?;
        require(Self::ID, self.ratio > 0, "`ratio` must be positive")
    }
    fn operands(&self) -> CompressIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        CompressIo {
            open: self.open.operand(),
            members: self.open.addresses(&[t, Is(self.ratio)]),
            y: Operand::new(Enc::BF16, &[t, Is(self.open.width() / 2)]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let t = at.at(Sym::Tokens);
        let read_bytes = t * self.ratio * (self.open.record.bytes() + 4);
        Cost { flops: 0.0, read_bytes, written_bytes: t * self.open.width() }
    }
}
