//! One model over several devices.

use super::{DraftLists, Drafter, Forward, Geometry, Sample, Sampled, StepLists};
use crate::error::{Error, Result};
use crate::kv::{PageKind, PageMemory};
use crate::vision::PictureInput;
use std::panic::resume_unwind;
use std::thread;

/// The ranks of a group as one [`Forward`]: each holds its share of the weights, runs every step on
/// a thread of its own, meets the others in the collectives and arrives at the same tokens.
pub struct Ranks<F: Forward>(Vec<F>);

impl<F: Forward + Send> Ranks<F> {
    /// Of the ranks in order.
    ///
    /// # Panics
    /// Without any.
    pub fn new(ranks: Vec<F>) -> Self {
        assert!(!ranks.is_empty(), "a group has at least one rank");
        Self(ranks)
    }

    /// The first rank.
    pub fn first(&self) -> &F {
        &self.0[0]
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &F> {
        self.0.iter()
    }

    /// What every rank answers; when one fails, the error that is not about another rank.
    fn all<T: PartialEq + Send>(&mut self, run: impl Fn(&mut F) -> Result<T> + Sync) -> Result<T> {
        if let [alone] = self.0.as_mut_slice() {
            return run(alone);
        }
        let run = &run;
        let answers: Vec<Result<T>> = thread::scope(|scope| {
            let start = |rank| scope.spawn(move || run(rank));
            let threads: Vec<_> = self.0.iter_mut().map(start).collect();
            let finish = |thread: thread::ScopedJoinHandle<'_, _>| thread.join();
            threads
                .into_iter()
                .map(|t| finish(t).unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        let (answers, mut errors): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        let about_another = |answer: &Result<T>| {
            matches!(answer, Err(Error::Device(tandem_hal::Error::Peer { .. })))
        };
        errors.sort_by_key(about_another);
        if let Some(error) = errors.into_iter().next() {
            return error;
        }
        let mut answers = answers.into_iter().flatten();
        let first = answers.next().expect("a group has at least one rank");
        match answers.all(|answer| answer == first) {
            true => Ok(first),
            false => Err(Error::Internal { invariant: "all ranks answer alike".into() }),
        }
    }
}

impl<F: Forward + Send> Forward for Ranks<F> {
    fn geometry(&self) -> &Geometry {
        self.0[0].geometry()
    }

    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        self.all(|rank| rank.step(lists, samples))
    }

    fn hidden(&mut self, lists: &StepLists) -> Result<Vec<f32>> {
        self.all(|rank| rank.hidden(lists))
    }

    /// Those of one rank: all run alike.
    fn replays(&self) -> u64 {
        self.0[0].replays()
    }

    fn page_memory(&mut self) -> Option<&mut dyn PageMemory> {
        self.0[0].page_memory()?;
        Some(self)
    }

    /// Every rank has the whole tower: it is small beside the model, and its rows go into every
    /// rank's embeddings.
    fn picture(&mut self, input: &PictureInput, first_row: u64) -> Result<()> {
        self.all(|rank| rank.picture(input, first_row))
    }

    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        self.all(|rank| rank.draft(lists, drafters))
    }
}

fn memory(rank: &mut impl Forward) -> Result<&mut dyn PageMemory> {
    let missing = || Error::Internal { invariant: "all ranks have caches to read".into() };
    rank.page_memory().ok_or_else(missing)
}

/// Every rank keeps the whole of the caches, with the same bytes.
impl<F: Forward + Send> PageMemory for Ranks<F> {
    fn page_bytes(&mut self, kind: PageKind) -> u64 {
        self.0[0].page_memory().map_or(0, |memory| memory.page_bytes(kind))
    }

    fn read_page(&mut self, kind: PageKind, page: u32) -> Result<Vec<u8>> {
        self.all(|rank| memory(rank)?.read_page(kind, page))
    }

    fn write_page(&mut self, kind: PageKind, page: u32, bytes: &[u8]) -> Result<()> {
        self.all(|rank| memory(rank)?.write_page(kind, page, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::v41::Config;

    struct Rank {
        geometry: Geometry,
        answer: fn() -> Result<Vec<Sampled>>,
    }

    impl Forward for Rank {
        fn geometry(&self) -> &Geometry {
            &self.geometry
        }
        fn step(&mut self, _: &StepLists, _: &[Sample<'_>]) -> Result<Vec<Sampled>> {
            (self.answer)()
        }
        fn draft(&mut self, _: &DraftLists, _: &[Drafter]) -> Result<Vec<Vec<u32>>> {
            Ok(vec![])
        }
    }

    fn step(answers: &[fn() -> Result<Vec<Sampled>>]) -> Result<Vec<Sampled>> {
        let geometry = Geometry::of(&Config::named("v4.1-flash").unwrap());
        let rank = |answer: &fn() -> _| Rank { geometry: geometry.clone(), answer: *answer };
        Ranks::new(answers.iter().map(rank).collect()).step(&StepLists::new(&[]), &[])
    }

    fn token(id: u32) -> Result<Vec<Sampled>> {
        Ok(vec![Sampled { token: Some(id), ..Sampled::default() }])
    }

    #[test]
    fn equal_answers_are_one_and_others_are_a_fault() {
        assert_eq!(step(&[|| token(1)]).unwrap(), token(1).unwrap());
        assert_eq!(step(&[|| token(1), || token(1)]).unwrap(), token(1).unwrap());
        let error = step(&[|| token(1), || token(2)]).unwrap_err();
        assert!(error.to_string().contains("all ranks answer alike"));
    }

    #[test]
    fn the_rank_that_failed_is_named_not_those_that_missed_it() {
        let missed = || Err(tandem_hal::Error::Peer { rank: 1 }.into());
        let failed = || Err(Error::argument("rank 1", "its own fault"));
        assert_eq!(step(&[missed, failed]).unwrap_err().to_string(), "rank 1: its own fault");
        assert!(matches!(step(&[missed, || token(1)]).unwrap_err(), Error::Device(_)));
    }
}
