//! `kv.norm_rotate_store`: RMSNorm, rotation and store of one latent a row, in one pass.
//!
//! Fused: same bits as [`crate::RmsNorm`], [`crate::Rotate`] with one head, [`crate::Store`]. Used
//! for window keys, compressed entries and index keys, and for DSpark's context and own keys.
//! Source: model report 3.5, 3.7, DSpark 4.2.

use crate::ops::prelude::*;
use crate::{Cache, RmsNorm, RmsNormIo, Rotate, RotateIo, Store, StoreIo};

io! {
    /// Operands of [`NormRotateStore`].
    pub struct NormRotateStoreIo {
        /// `[tokens, width]` bf16.
        x: In,
        /// `[width]` bf16.
        weight: In,
        /// `[tokens]` i32.
        position: In,
        /// `[tokens]` i32 addresses.
        at: In,
        /// `[pages, page_entries]` records.
        cache: InOut,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct NormRotateStore {
        /// Added to the mean square.
        pub eps: Real,
        /// The rotation, of one head.
        pub rotate: Rotate,
        /// Target.
        pub cache: Cache,
    }
}

impl NormRotateStore {
    fn norm(&self) -> RmsNorm {
        RmsNorm { width: self.rotate.head_dim, eps: self.eps }
    }
    fn store(&self) -> Store {
        Store { cache: self.cache.clone(), x: Elem::Bf16 }
    }
}

impl Operator for NormRotateStore {
    const ID: &'static str = "kv.norm_rotate_store";
    type Io<I, O> = NormRotateStoreIo<I, O>;
    fn check(&self) -> Result<()> {
        self.norm().check()?;
        self.rotate.check()?;
        self.store().check()?;
        require(Self::ID, self.rotate.heads == 1, "`rotate` must have one head")?;
        let same = self.rotate.head_dim == self.cache.width();
        require(Self::ID, same, "the record's width is not the head dim")
    }
    fn operands(&self) -> NormRotateStoreIo<Operand, Operand> {
        let (norm, store) = (self.norm().operands(), self.store().operands());
        NormRotateStoreIo {
            x: norm.x,
            weight: norm.weight,
            position: self.rotate.operands().position,
            at: store.at,
            cache: store.cache,
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        self.store().cost(at)
    }
    fn decompose(&self, io: NormRotateStoreIo<Ref, Ref>, to: &mut Steps) {
        let width = self.rotate.head_dim;
        let normed = to.temp(Enc::BF16, &[Of(Sym::Tokens), Is(width)]);
        to.step(self.norm(), RmsNormIo { x: io.x, weight: io.weight, y: normed });
        to.step(self.rotate.clone(), RotateIo { x: normed, position: io.position });
        to.step(self.store(), StoreIo { x: normed, at: io.at, cache: io.cache });
    }
}
