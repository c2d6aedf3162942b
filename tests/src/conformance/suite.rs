//! Trials: every lane, operator and accepting row, by name.

use super::{
    arguments::Settings,
    case::Case,
    check::{RowTest, Scope, Verdict},
    draws::{Draws, numbers},
    kind::Kind,
    lane::Lane,
    operator::{self, CATALOGUE, Entry},
    property::{Finding, Property},
    subject::Group,
    summary::{Counts, Summary},
    xfail,
};
use libtest_mimic::{Failed, Trial};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tandem_hal::{Candidate, Class, Domain, Extents, Numerics, Op, Want};
use tandem_reference::{Profile, Random, compare::Bias};

/// Shrinking steps at most; each runs a whole case.
const SHRINKS: u32 = 48;

/// Drawn cases that a row may refuse for each that it must take.
const REFUSALS: u32 = 8;

/// What trials leave for the end of the run.
#[derive(Default)]
pub struct Outcome {
    /// Cases by row.
    pub summary: Summary,
    /// Trials of rows with an expected failure: how many ran, how many failed.
    expected: BTreeMap<String, (u32, u32)>,
}

impl Outcome {
    /// Rows that are expected to fail and did not.
    pub fn unexpected_passes(&self) -> Vec<String> {
        let passed = self.expected.iter().filter(|(_, (ran, failed))| *ran > 0 && *failed == 0);
        passed.map(|(name, _)| name.clone()).collect()
    }
}

/// The suite.
#[derive(Clone)]
pub struct Suite {
    /// How it is run.
    pub settings: Settings,
    /// Known failures.
    pub expected: Arc<xfail::List>,
    /// What is left at the end.
    pub outcome: Arc<Mutex<Outcome>>,
}

impl Suite {
    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        // Counts are whole after every statement, so a poisoned lock still guards them.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every trial of a lane.
    pub fn trials(&self, lane: &Lane) -> Vec<Trial> {
        let wanted = |entry: &&Entry| {
            self.settings.case.as_ref().is_none_or(|case| case.op.id() == entry.id)
        };
        CATALOGUE.iter().filter(wanted).flat_map(|entry| self.operator(lane, entry)).collect()
    }

    fn operator(&self, lane: &Lane, entry: &Entry) -> Vec<Trial> {
        let prefix = format!("{}/{}/{}", lane.name, lane.info.arch, entry.id);
        let edges = (entry.edges)();
        if lane.packed_only && !edges.iter().any(|(op, _)| may_be_packed(op)) {
            return vec![];
        }
        if edges.is_empty() {
            let failed = || Err(Failed::from("the card has no cases: it is not written"));
            return vec![Trial::test(format!("{prefix}/none/table"), failed)];
        }
        let rows = match rows_of(lane, entry, &edges) {
            Ok(rows) => rows,
            Err(why) => {
                let failed = move || Err(Failed::from(why));
                return vec![Trial::test(format!("{prefix}/none/table"), failed)];
            }
        };
        let mut trials = vec![];
        for row in rows {
            for kind in Kind::ALL {
                // One large lane is enough, and one case is no kind.
                let once = kind == Kind::Edges || self.settings.case.is_none();
                if (kind == Kind::Large && lane.packed_only) || !once {
                    continue;
                }
                // Trials run at once, and a group takes one collective at a time: each has its own.
                let (suite, test) = (self.clone(), RowTest::new(lane.clone(), *entry, &row));
                let name = format!("{prefix}/{}/{}", row.kernel, kind.name());
                let label = name.clone();
                trials.push(Trial::test(name, move || suite.run(&test, kind, &label)));
            }
        }
        trials
    }

    /// One trial, with expected failures taken into account.
    fn run(&self, test: &RowTest, kind: Kind, name: &str) -> Result<(), Failed> {
        let result = match (&self.settings.case, kind) {
            (Some(case), _) => self.cases(test, std::slice::from_ref(case), kind, name),
            (None, Kind::Edges) => self.cases(test, &self.edges(test), kind, name),
            (None, Kind::Large) => self.cases(test, &self.large(test), kind, name),
            (None, Kind::Drawn) => self.drawn(test, name),
        };
        let board = &test.lane.info.board;
        let Some(entry) = self.expected.entry(test.entry.id, test.row, board) else {
            return result.map_err(Failed::from);
        };
        let key = format!("{} {} {board}", entry.op, entry.row);
        let mut outcome = self.outcome();
        let (ran, failed) = outcome.expected.entry(key).or_default();
        *ran += 1;
        *failed += u32::from(result.is_err());
        Ok(())
    }

    fn edges(&self, test: &RowTest) -> Vec<Case> {
        let list = (test.entry.edges)();
        let most = self.settings.edges.map_or(list.len(), |most| most as usize);
        let taken = spread(list.len(), most);
        let edges = list.into_iter().enumerate().filter(|(i, _)| taken.contains(i));
        edges
            .map(|(i, (op, extents))| Case {
                op,
                extents,
                // Every profile comes round as the edges do.
                seed: self.settings.seed.wrapping_add(i as u64),
            })
            .collect()
    }

    /// The edges whose operands all have elements.
    fn large(&self, test: &RowTest) -> Vec<Case> {
        let whole = |case: &Case| {
            let facts = operator::facts(&case.op);
            let present = facts.operands.iter().filter(|(_, _, spec)| !spec.absent);
            present.into_iter().all(|(_, _, spec)| !spec.shape(&case.extents).contains(&0))
        };
        let mut cases = self.edges(test);
        cases.retain(whole);
        cases
    }

    fn cases(&self, test: &RowTest, cases: &[Case], kind: Kind, name: &str) -> Result<(), String> {
        let scope = if kind == Kind::Large { Scope::Large } else { Scope::Edges };
        let (mut counts, mut bias, mut reports) = (Counts::default(), Bias::default(), vec![]);
        for case in cases {
            let verdict = test.check(case, scope);
            bias.join(verdict.bias);
            count(&mut counts, &verdict);
            if !verdict.findings.is_empty() {
                reports.push(report(test, case, name, &verdict.findings));
            }
            // These need much memory: the first that the row takes is enough.
            if scope == Scope::Large && verdict.refused.is_none() {
                break;
            }
        }
        if let Err(what) = bias.verdict() {
            let finding = Finding { property: Property::Bias, what };
            reports.push(format!("over {} cases: {finding}", cases.len()));
            counts.failed += 1;
        }
        self.outcome().summary.add(test.tested(), kind, counts);
        // More would bury the first.
        if reports.is_empty() { Ok(()) } else { Err(reports[..reports.len().min(3)].join("\n")) }
    }

    /// Random cases, shrunk when one fails.
    fn drawn(&self, test: &RowTest, name: &str) -> Result<(), String> {
        let config = Config {
            cases: self.settings.cases,
            failure_persistence: None,
            max_shrink_iters: SHRINKS,
            max_global_rejects: self.settings.cases.saturating_mul(REFUSALS),
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes(self.settings.seed, name));
        let mut runner = TestRunner::new_with_rng(config, rng);
        let state = RefCell::new((Counts::default(), Bias::default(), None));
        let result = runner.run(&numbers(), |numbers| {
            let case = drawn_case(&test.entry, &numbers);
            let verdict = test.check(&case, Scope::Drawn);
            let mut state = state.borrow_mut();
            count(&mut state.0, &verdict);
            if let (Some(reason), []) = (&verdict.refused, &verdict.findings[..]) {
                return Err(TestCaseError::reject(reason.clone()));
            }
            if verdict.findings.is_empty() {
                state.1.join(verdict.bias);
                return Ok(());
            }
            state.2 = Some(report(test, &case, name, &verdict.findings));
            Err(TestCaseError::fail("a property does not hold"))
        });
        let (mut counts, bias, last) = state.into_inner();
        let leans = bias.verdict().map_err(|what| format!("over {} cases: {what}", counts.held));
        counts.failed += u64::from(leans.is_err());
        self.outcome().summary.add(test.tested(), Kind::Drawn, counts);
        match result {
            // The runner gives up when the row refuses too many; the counts tell.
            Ok(()) | Err(TestError::Abort(_)) => leans,
            Err(TestError::Fail(_, numbers)) => {
                // The last failure is not always the smallest: run that one again.
                let case = drawn_case(&test.entry, &numbers);
                let verdict = test.check(&case, Scope::Drawn);
                let smallest = report(test, &case, name, &verdict.findings);
                Err(if verdict.findings.is_empty() { last.unwrap_or(smallest) } else { smallest })
            }
        }
    }
}

/// The case that a list of numbers stands for; the first is the seed of its data.
pub fn drawn_case(entry: &Entry, numbers: &[u64]) -> Case {
    let (seed, rest) = numbers.split_first().map_or((0, numbers), |(s, rest)| (*s, rest));
    let (op, extents) = (entry.draw)(&mut Draws::new(rest));
    Case { op, extents, seed }
}

/// At most `most` places of `all`, as far apart as may be: cases that are alike stand together.
fn spread(all: usize, most: usize) -> Vec<usize> {
    let most = most.min(all);
    (0..most).map(|i| i * all / most).collect()
}

fn count(counts: &mut Counts, verdict: &Verdict) {
    if verdict.refused.is_some() {
        counts.refused += 1;
    } else if verdict.findings.is_empty() {
        counts.held += 1;
    } else {
        counts.failed += 1;
    }
}

fn seed_bytes(seed: u64, name: &str) -> [u8; 32] {
    let lane = name.bytes().fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
    let mut random = Random::new(seed, lane);
    let mut bytes = [0; 32];
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = random.bits().to_le_bytes();
    }
    bytes
}

/// What failed, where, and the line that runs it again.
fn report(test: &RowTest, case: &Case, name: &str, findings: &[Finding]) -> String {
    let list: Vec<String> = findings.iter().map(|f| format!("  {f}")).collect();
    let (line, seed) = (case.line(), case.seed);
    let profile = Profile::of_seed(seed);
    // One case goes through the list of the edges, which holds all properties but large offsets.
    let prefix = name.rsplit_once('/').map_or(name, |(prefix, _)| prefix);
    format!(
        "{line}, row {} on {}, seed {seed} ({profile:?})\n{}\n  reproduce: cargo test -p tandem-tests \
         --test conformance -- {prefix}/edges --exact --seed {seed} --case '{line}'",
        test.row,
        test.lane.name,
        list.join("\n"),
    )
}

fn may_be_packed(op: &Op) -> bool {
    let facts = operator::facts(op);
    let packs = |domain| matches!(domain, Domain::Weight(Class::Dense | Class::Experts));
    facts.operands.iter().any(|(_, _, spec)| packs(spec.domain))
}

/// Rows that take at least one edge when forced, or why there is none.
fn rows_of(lane: &Lane, entry: &Entry, edges: &[(Op, Extents)]) -> Result<Vec<Candidate>, String> {
    let open = |row: Option<&str>| -> Result<Group, String> {
        lane.open(operator::ranks(&edges[0].0), entry.id, row).map_err(|e| e.to_string())
    };
    let want = |extents: &Extents| Want { numerics: Numerics::Free, limits: *extents };
    let free = open(None)?;
    let (mut rows, mut reasons) = (vec![], vec![]);
    for candidate in free[0].candidates(&edges[0].0, &want(&edges[0].1)) {
        let forced = open(Some(candidate.kernel))?;
        let takes = |(op, extents): &(Op, Extents)| {
            let list = forced[0].candidates(op, &want(extents));
            list.into_iter().any(|c| c.kernel == candidate.kernel && c.verdict.is_ok())
        };
        if edges.iter().any(takes) {
            rows.push(candidate);
        } else if let Err(reason) = candidate.verdict {
            reasons.push(format!("{}: {reason}", candidate.kernel));
        }
    }
    let owed = entry.core && !operator::is_fused(&edges[0].0);
    if rows.is_empty() && owed {
        return Err(format!("no row takes any case: {}", reasons.join("; ")));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_pass_against_expectation_are_named() {
        let mut outcome = Outcome::default();
        outcome.expected.insert("a.fails r b".into(), (3, 1));
        outcome.expected.insert("a.passes r b".into(), (3, 0));
        outcome.expected.insert("a.filtered r b".into(), (0, 0));
        assert_eq!(outcome.unexpected_passes(), ["a.passes r b"]);
    }

    #[test]
    fn a_few_of_many_cases_lie_apart() {
        assert_eq!(spread(10, 3), [0, 3, 6]);
        assert_eq!(spread(3, 10), [0, 1, 2]);
        assert_eq!((spread(5, 1), spread(5, 0), spread(0, 5)), (vec![0], vec![], vec![]));
    }

    #[test]
    fn seeds_differ_by_trial_and_repeat() {
        assert_eq!(seed_bytes(1, "a"), seed_bytes(1, "a"));
        assert_ne!(seed_bytes(1, "a"), seed_bytes(1, "b"));
        assert_ne!(seed_bytes(1, "a"), seed_bytes(2, "a"));
    }
}
