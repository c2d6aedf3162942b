//! `kv.locate`: entry numbers of a sequence to addresses of a cache,
//! `y[t,i] = table[sequence[t]][e / page_entries] page_entries + e mod page_entries`, `e = entry[t,i]`.
//!
//! Gives -1 where the entry is -1 or negative, lies past the table, the page is -1, or the sequence
//! is outside. No rounding. Rows see only themselves. Once per selection; the layers that reuse a
//! selection reuse the addresses. Source: model report 3.9.

use crate::ops::prelude::*;

io! {
    /// Operands of [`Locate`].
    pub struct LocateIo {
        /// `[tokens, count]` i32 entry numbers.
        entry: In,
        /// `[tokens]` i32, each row's sequence.
        sequence: In,
        /// `[sequences, table_pages]` i32 pages.
        table: In,
        /// `[tokens, count]` i32 addresses.
        y: Out,
    }
}

descriptor! {
    /// See the [page](self).
    pub struct Locate {
        /// Entries a row.
        pub count: u64,
        /// Entries of a page.
        pub page_entries: u64,
        /// The pool the pages come from.
        pub pages: Sym,
    }
}

impl Operator for Locate {
    const ID: &'static str = "kv.locate";
    type Io<I, O> = LocateIo<I, O>;
    fn check(&self) -> Result<()> {
        require(Self::ID, self.count > 0 && self.page_entries > 0, "sizes must be positive")
    }
    fn operands(&self) -> LocateIo<Operand, Operand> {
        let rows = [Of(Sym::Tokens), Is(self.count)];
        LocateIo {
            entry: Operand::index(&rows, IndexBound::Rows(Sym::TablePages, self.page_entries)),
            sequence: sequence_operand(),
            table: table_operand(),
            y: Operand::new(Enc::I32, &rows),
        }
    }
}

/// Each row's sequence, `[tokens]` i32.
pub(crate) fn sequence_operand() -> Operand {
    Operand::index(&[Of(Sym::Tokens)], IndexBound::Rows(Sym::Sequences, 1))
}

/// Page tables, `[sequences, table_pages]` i32.
pub(crate) fn table_operand() -> Operand {
    let dims = [Of(Sym::Sequences), Of(Sym::TablePages)];
    Operand::index(&dims, IndexBound::Rows(Sym::Pages, 1))
}
