//! `attn.sparse`: one softmax over listed window and compressed entries, with sink.
//!
//! Keys are values. Over the listed entries i (window list first, then selected):
//! `s_i = scale q_h · k_i`, `m = max s_i`, `p_i = exp(s_i - m)`,
//! `Z = Σ p_i + exp(sink_h - m)`, `y_h = Σ bf(p_i) k_i / Z`, and `lse_h = m + ln Z`.
//! The sink is a raw logit: not scaled, no value, not part of `m`. Without `sink` its term is
//! absent.
//!
//! Roundings: `s_i` and the exponentials (the sink's too) to f32; the numerator's weights, those against
//! the final `m`, to bf16, the denominator's not; sums in list order (f64 in the reference); `y` once to
//! bf16. Rounding against the maximum so far, as an online softmax does, is not the same: checkpoints
//! show it.
//! An address of -1 or outside is skipped: nothing of it is read, multiplied or counted, so NaN in
//! unlisted entries never shows. A row without any entry gives zeros and `lse = -inf` (with sink:
//! `lse = sink`). If `sink - m` overflows, `Z` is infinite and `y` is zero. An address listed twice
//! counts twice. NaN in a listed key or in `q` makes that row (and head) NaN.
//! Rows see only themselves. Cost: `4 t heads head_dim entries` FLOPs, each row's entries once.
//! Source: model report 3.9.

use crate::Cache;
use crate::ops::prelude::*;

io! {
    /// Operands of [`SparseAttention`].
    pub struct SparseAttentionIo {
        /// `[tokens, heads, head_dim]` bf16.
        q: In,
        /// Cache of the window.
        window: In,
        /// `[tokens, window_count]` i32 addresses, oldest first.
        window_at: In,
        /// Cache of compressed entries; absent when `selected` is none.
        selected: In,
        /// `[tokens, selected_count]` i32 addresses; absent likewise.
        selected_at: In,
        /// `[heads]` f32; absent without `sink`.
        sink: In,
        /// `[tokens, heads, head_dim]` bf16.
        y: Out,
        /// `[tokens, heads]` f32; absent without `lse`.
        lse: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct SparseAttention {
        /// Query heads here; a rank may own a few only.
        pub heads: u64,
        /// Dims of a head, and of an entry.
        pub head_dim: u64,
        /// Cache of the window.
        pub window: Cache,
        /// Length of the window lists.
        pub window_count: u64,
        /// Cache of the compressed entries, if the layer has any.
        pub selected: Option<Cache>,
        /// Length of the selected lists; 0 without `selected`.
        pub selected_count: u64,
        /// Softmax scale.
        pub scale: Real,
        /// Whether there is a sink.
        pub sink: bool,
        /// Whether the log of the denominator is wanted.
        pub lse: bool,
    }
}

impl Operator for SparseAttention {
    const ID: &'static str = "attn.sparse";
    type Io<I, O> = SparseAttentionIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.heads > 0 && self.window_count > 0, "sizes must be positive")?;
        for cache in [Some(&self.window), self.selected.as_ref()].into_iter().flatten() {
            cache.check(Self::ID)?;
            require(Self::ID, cache.width() == self.head_dim, "entries are not `head_dim` wide")?;
        }
        let pair = self.selected.is_some() == (self.selected_count > 0);
        require(Self::ID, pair, "`selected` and `selected_count` go together")
    }
    fn operands(&self) -> SparseAttentionIo<Operand, Operand> {
        let t = Of(Sym::Tokens);
        let q = Operand::new(Enc::BF16, &[t, Is(self.heads), Is(self.head_dim)]);
        // Stands in when there is no selected cache; its encoding is all that is compared then.
        let selected = self.selected.as_ref().unwrap_or(&self.window);
        let some = self.selected.is_some();
        SparseAttentionIo {
            q: q.clone(),
            window: self.window.operand(),
            window_at: self.window.addresses(&[t, Is(self.window_count)]),
            selected: selected.operand().when(some),
            selected_at: selected.addresses(&[t, Is(self.selected_count)]).when(some),
            sink: Operand::new(Enc::F32, &[Is(self.heads)]).when(self.sink),
            y: q,
            lse: Operand::new(Enc::F32, &[t, Is(self.heads)]).when(self.lse),
        }
    }
    fn cost(&self, at: &Extents) -> Cost {
        let t = at.at(Sym::Tokens);
        let entries = self.window_count + self.selected_count;
        let selected = self.selected.as_ref().map_or(0, |c| c.record.bytes());
        let listed =
            self.window_count * self.window.record.bytes() + self.selected_count * selected;
        let row = self.heads * self.head_dim * 2;
        Cost {
            flops: 2.0 * matmul_flops(t, entries, self.heads * self.head_dim),
            read_bytes: t * (row + listed + entries * 4),
            written_bytes: t * row,
        }
    }
}
