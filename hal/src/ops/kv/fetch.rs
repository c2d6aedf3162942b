//! `kv.fetch`: cache entries back to rows, `y[t] = value(cache[at[t]])`.
//!
//! Roundings: code times scale to f32, then to `y`; exact for every record but `fp8` (whose scale
//! has a whole mantissa), plain f32 into bf16, and values below bf16's subnormals. An address of -1,
//! or one outside, gives a row of zeros and reads nothing. A NaN scale gives NaN.
//! Rows see only themselves. Used by verification and by tests. Source: model report 4.2.

use crate::Cache;
use crate::ops::prelude::*;

io! {
    /// Operands of [`Fetch`].
    pub struct FetchIo {
        /// `[pages, page_entries]` records.
        cache: In,
        /// `[tokens]` i32 addresses.
        at: In,
        /// `[tokens, width]`.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Fetch {
        /// Source.
        pub cache: Cache,
        /// How `y` is stored: bf16 or f32.
        pub y: Elem,
    }
}

impl Operator for Fetch {
    const ID: &'static str = "kv.fetch";
    type Io<I, O> = FetchIo<I, O>;
    fn check(&self) -> Result<()> {
        self.cache.check(Self::ID)?;
        require(Self::ID, matches!(self.y, Elem::F32 | Elem::Bf16), "`y` is bf16 or f32")
    }
    fn operands(&self) -> FetchIo<Operand, Operand> {
        let (t, width) = (Of(Sym::Tokens), Is(self.cache.width()));
        FetchIo {
            cache: self.cache.operand(),
            at: self.cache.addresses(&[t]),
            y: Operand::new(Enc::Plain(self.y), &[t, width]),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let t = at.at(Sym::Tokens);
        let written_bytes = t * self.cache.width() * self.y.bits() / 8;
        Cost { flops: 0.0, read_bytes: t * (self.cache.record.bytes() + 4), written_bytes }
    }
}
