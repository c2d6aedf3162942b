//! A pool of equal pages.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Too few free pages. Nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{pool}: {wanted} pages wanted, {free} of {pages} free; end or shorten a sequence")]
pub struct OutOfPages {
    /// The pool.
    pub pool: &'static str,
    /// Pages wanted at once.
    pub wanted: u64,
    /// Pages free.
    pub free: u64,
    /// Pages of the pool.
    pub pages: u64,
}

/// Hands out pages and takes them back when they are dropped. Cloning shares the pool.
#[derive(Debug, Clone)]
pub struct PagePool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: &'static str,
    pages: u32,
    /// Ids to hand out, the next one last.
    free: Mutex<Vec<u32>>,
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Vec<u32>> {
        // A list of ids is whole after every push and pop, so a panic elsewhere cannot tear it.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page of a pool, owned once; dropping it gives it back.
#[derive(Debug)]
pub struct Page {
    id: u32,
    pool: Arc<Shared>,
}

impl Page {
    /// Its number in the pool.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.pool.free().push(self.id);
    }
}

impl PagePool {
    /// A pool of `pages` free pages.
    ///
    /// # Panics
    /// When page ids would not fit an `i32`, as device lists hold them.
    pub fn new(name: &'static str, pages: u64) -> Self {
        let pages = i32::try_from(pages).expect("page ids are 31-bit in device lists") as u32;
        let free = Mutex::new((0..pages).rev().collect());
        Self { shared: Arc::new(Shared { name, pages, free }) }
    }

    /// Pages of the pool.
    pub fn pages(&self) -> u64 {
        u64::from(self.shared.pages)
    }

    /// Pages nobody owns.
    pub fn free_pages(&self) -> u64 {
        self.shared.free().len() as u64
    }

    /// Takes `count` pages, or none.
    ///
    /// # Errors
    /// [`OutOfPages`] when fewer are free.
    pub fn take(&self, count: u64) -> Result<Vec<Page>, OutOfPages> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut free = self.shared.free();
        let have = free.len() as u64;
        if have < count {
            let (pool, pages) = (self.shared.name, self.pages());
            return Err(OutOfPages { pool, wanted: count, free: have, pages });
        }
        let page = |id| Page { id, pool: self.shared.clone() };
        Ok(free.drain((have - count) as usize..).rev().map(page).collect())
    }

    /// Whether every page is either free or among `owned`, and that once only: several may hold the
    /// same [`Page`], but no two pages have one number.
    ///
    /// # Errors
    /// Names the pool and the first page that is not.
    pub fn check<'a>(&self, owned: impl Iterator<Item = &'a Page>) -> Result<(), String> {
        let mut owners = vec![0u32; self.shared.pages as usize];
        let free = self.shared.free();
        let mut seen = HashSet::new();
        let owned = owned.filter(|page| seen.insert(std::ptr::from_ref::<Page>(page)));
        for id in free.iter().copied().chain(owned.map(Page::id)) {
            owners[id as usize] += 1;
        }
        match owners.iter().position(|owners| *owners != 1) {
            None => Ok(()),
            Some(page) => {
                let (pool, owners) = (self.shared.name, owners[page]);
                Err(format!("{pool}: page {page} has {owners} owners instead of one"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_is_all_or_nothing_and_dropping_gives_back() {
        let pool = PagePool::new("test", 4);
        let three = pool.take(3).unwrap();
        assert_eq!(three.iter().map(Page::id).collect::<Vec<_>>(), [0, 1, 2]);
        let refused = pool.take(2).unwrap_err();
        assert_eq!((refused.wanted, refused.free, refused.pages), (2, 1, 4));
        assert_eq!(pool.free_pages(), 1);
        pool.check(three.iter()).unwrap();
        assert!(pool.check(three[1..].iter()).unwrap_err().contains("page 0 has 0 owners"));
        drop(three);
        assert_eq!(pool.free_pages(), 4);
        pool.check(std::iter::empty()).unwrap();
    }
}
