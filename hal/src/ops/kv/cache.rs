//! How a paged cache is cut up.

use crate::ops::prelude::*;

descriptor! {
    /// Record and page size of a cache. Writers and readers name the same one; the operand check
    /// compares it with the view.
    pub struct Cache {
        /// What an entry looks like.
        pub record: Record,
        /// Entries of a page.
        pub page_entries: u64,
        /// The pool its pages come from.
        pub pages: Sym,
    }
}

impl Cache {
    /// The cache as an operand, `[pages, page_entries]`.
    pub fn operand(&self) -> Operand {
        let dims = [Of(self.pages), Is(self.page_entries)];
        Operand::new(Enc::Record(self.record), &dims).domain(Domain::Cache)
    }
    /// Addresses of this cache, `i32`, -1 for none.
    pub fn addresses(&self, dims: &[crate::Dim]) -> Operand {
        Operand::index(dims, self.bound())
    }
    /// One past the last address.
    pub fn bound(&self) -> IndexBound {
        IndexBound::Rows(self.pages, self.page_entries)
    }
    /// Elements of an entry's vector.
    pub fn width(&self) -> u64 {
        u64::from(self.record.width)
    }
    /// Whether the fields make sense for operator `op`.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        require(op, self.page_entries > 0, "`page_entries` must be positive")?;
        let pool = matches!(self.pages, Sym::Pages | Sym::WindowPages | Sym::OpenPages);
        require(op, pool, "`pages` must be a pool of pages")?;
        let whole = self.width() > 0 && self.width().is_multiple_of(self.record.block());
        require(op, whole, "the record's width is not a multiple of its block")?;
        let rope = self.record.form != Form::Fp8Rope || self.width() > 64;
        require(op, rope, "`fp8rope` needs more than 64 elements")
    }
}
