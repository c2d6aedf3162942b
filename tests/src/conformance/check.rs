//! Every property of one row on one case.

use super::{
    bench::Bench,
    case::Case,
    lane::Lane,
    operator::{self, Entry},
    properties::{agrees, large, misuse, nan, replay, rows, steps, strays, streams, table, views},
    property::{Finding, Property},
    subject::{Base, Group, Subject},
    summary::Tested,
};
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};
use tandem_hal::{Candidate, Error, Facts, Numerics, PORTABLE, Rank, Result, STEPS, Want};
use tandem_reference::compare::Bias;

/// How much of the list a case goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All but what needs much memory.
    Edges,
    /// What depends on data and shape.
    Drawn,
    /// Large offsets alone.
    Large,
}

/// What became of a case.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Where roundings went.
    pub bias: Bias,
    /// Why the row does not take the case, if it does not.
    pub refused: Option<String>,
}

/// How many ranks were opened, and the rows forced on them.
type Opened = (u32, Vec<(String, String)>);

/// One row of one operator on one lane, with the devices it needs open.
pub struct RowTest {
    /// The lane.
    pub lane: Lane,
    /// The operator.
    pub entry: Entry,
    /// The row.
    pub row: &'static str,
    /// Its rank.
    pub rank: Rank,
    /// Its bits.
    pub bits: &'static str,
    open: Mutex<HashMap<Opened, Arc<Group>>>,
}

impl RowTest {
    /// Opens nothing yet.
    pub fn new(lane: Lane, entry: Entry, row: &Candidate) -> RowTest {
        let Candidate { kernel, rank, bits, .. } = *row;
        RowTest { lane, entry, row: kernel, rank, bits, open: Mutex::default() }
    }

    /// Under what the summary counts it.
    pub fn tested(&self) -> Tested {
        let (lane, op) = (self.lane.name.clone(), self.entry.id);
        Tested { lane, op, row: self.row, rank: self.rank, bits: self.bits }
    }

    fn devices(&self, ranks: u32, row: Option<&str>) -> Result<Arc<Group>> {
        self.opened((
            ranks,
            row.map(|row| (self.entry.id.into(), row.into())).into_iter().collect(),
        ))
    }

    fn opened(&self, key: Opened) -> Result<Arc<Group>> {
        // Groups are put in whole, so a poisoned lock still guards the map.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = open.get(&key) {
            return Ok(group.clone());
        }
        let group = Arc::new(self.lane.open_with(key.0, key.1.clone())?);
        open.insert(key, group.clone());
        Ok(group)
    }

    /// Devices where the steps of a fused operator have the bits that a row names, those of plain
    /// kernels for steps that it does not name. A row of bits of its own takes them as they come.
    fn steps(&self, case: &Case, free: &Arc<Group>, bits: &str) -> Result<Arc<Group>> {
        let Some(named) = bits.strip_prefix(STEPS) else { return Ok(free.clone()) };
        let named: Vec<_> = named.split_whitespace().filter_map(|s| s.split_once('=')).collect();
        let want = Want { numerics: Numerics::Free, limits: case.extents };
        let mut overrides = vec![];
        for step in operator::steps(&case.op) {
            let of_step = named.iter().find(|(op, _)| *op == step.id());
            let bits = of_step.map_or(PORTABLE, |(_, bits)| bits);
            let known = free[0].candidates(&step, &want).iter().any(|c| c.bits == bits);
            // The reference has one set of bits for everything, and no need to name it.
            if known || of_step.is_some() {
                overrides.push((step.id().into(), bits.into()));
            }
        }
        self.opened((operator::ranks(&case.op), overrides))
    }

    /// Run a case; a panic is a finding like any other.
    pub fn check(&self, case: &Case, scope: Scope) -> Verdict {
        let run = AssertUnwindSafe(|| self.properties(case, scope));
        let failed = |what: String| Verdict {
            findings: vec![Finding { property: Property::Agrees, what }],
            ..Verdict::default()
        };
        match catch_unwind(run) {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => failed(error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                failed(format!("panicked: {}", text.unwrap_or("no message")))
            }
        }
    }

    fn properties(&self, case: &Case, scope: Scope) -> Result<Verdict> {
        let facts = operator::facts(&case.op);
        let ranks = operator::ranks(&case.op);
        let want = Want { numerics: Numerics::Free, limits: case.extents };
        let forced = match self.devices(ranks, Some(self.row)) {
            // A host with fewer boards than ranks takes the smaller groups only.
            Err(Error::NoDevice { reason, .. }) if ranks > 1 => {
                return Ok(Verdict { refused: Some(reason), ..Verdict::default() });
            }
            devices => devices?,
        };
        let free = self.devices(ranks, None)?;
        let candidates = forced[0].candidates(&case.op, &want);
        let Some(Candidate { numerics, bits, accumulator, verdict, .. }) =
            named(&candidates, self.row)
        else {
            let reason = format!("there is no row {}", self.row);
            return Err(Error::Unsupported { op: case.op.id().into(), reason });
        };
        let mut findings = vec![];
        let mut add = |property, what: Result<Option<String>>| {
            let what = what.unwrap_or_else(|error| Some(format!("returned: {error}")));
            findings.extend(what.map(|what| Finding { property, what }));
        };
        if scope == Scope::Edges {
            let wants = [Want { numerics: *numerics, ..want }, Want::row_invariant(want.limits)];
            for want in wants {
                add(Property::Table, table::check(&case.op, &want, &free, &*self.lane.provider));
            }
        }
        if let Err(reason) = verdict {
            return Ok(Verdict { findings, refused: Some(reason.clone()), ..Verdict::default() });
        }
        let rows = case.extents.at(facts.rows);
        if operator::plan(&case.op, &*forced[0], &want)?.kernel(rows) != self.row {
            let refused = Some(format!("made for other numbers of rows than {rows}"));
            return Ok(Verdict { findings, refused, ..Verdict::default() });
        }
        let stranger = self.lane.open(1, self.entry.id, None)?.remove(0);
        let sibling = match self.sibling(&candidates, case, &want, bits)? {
            Some(name) => Some((name, self.devices(ranks, Some(name))?)),
            None => None,
        };
        let subject = Subject {
            bench: Bench { case, facts: &facts, devices: &forced, numerics: *numerics },
            promise: *numerics,
            bits,
            accumulator: *accumulator,
            stranger: &stranger,
            free: &free,
            steps: &*self.steps(case, &free, bits)?,
            sibling: sibling.as_ref().map(|(name, group)| (*name, &**group)),
        };
        let (base, bias) = agrees::check(&subject, &mut findings)?;
        findings.extend(others(&subject, &base, scope, &facts));
        Ok(Verdict { findings, bias, refused: None })
    }

    /// Another row with these bits that takes the case.
    fn sibling(
        &self,
        candidates: &[Candidate],
        case: &Case,
        want: &Want,
        bits: &str,
    ) -> Result<Option<&'static str>> {
        for other in candidates.iter().filter(|c| c.kernel != self.row && c.bits == bits) {
            let devices = self.devices(operator::ranks(&case.op), Some(other.kernel))?;
            let list = devices[0].candidates(&case.op, want);
            if named(&list, other.kernel).is_some_and(|c| c.verdict.is_ok()) {
                return Ok(Some(other.kernel));
            }
        }
        Ok(None)
    }
}

fn named<'a>(candidates: &'a [Candidate], row: &str) -> Option<&'a Candidate> {
    candidates.iter().find(|c| c.kernel == row)
}

/// The properties that compare with the first launch.
fn others(s: &Subject<'_>, base: &Base, scope: Scope, facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![];
    let mut add = |property, what: Result<Option<String>>| {
        let what = what.unwrap_or_else(|error| Some(format!("returned: {error}")));
        findings.extend(what.map(|what| Finding { property, what }));
    };
    if scope == Scope::Large {
        add(Property::Views, large::check(s, base));
        return findings;
    }
    add(Property::Rows, rows::check(s, base));
    add(Property::Replay, replay::check(s, base));
    add(Property::Views, views::check(s, base));
    add(Property::Strays, strays::check(s));
    add(Property::Nan, nan::check(s, base));
    add(Property::Streams, streams::check(s, base));
    add(Property::Steps, steps::check(s, base));
    if scope == Scope::Edges {
        add(Property::Pack, pack(s, base, facts));
        add(Property::Misuse, misuse::check(s, base));
    }
    findings
}

/// Property 12: pack then unpack is the identity.
fn pack(s: &Subject<'_>, base: &Base, facts: &Facts) -> Result<Option<String>> {
    let holds_weight = |o: &tandem_hal::Operand| matches!(o.domain, tandem_hal::Domain::Weight(_));
    if !facts.operands.iter().any(|(_, _, o)| holds_weight(o)) {
        return Ok(None);
    }
    let found = s.bench.each_rank(|rank, device| {
        let (_, stage) =
            s.bench.stage(device, &s.bench.case.extents, &base.data[rank], &Default::default())?;
        stage.round_trip(&base.data[rank])
    })?;
    Ok(found.into_iter().flatten().next())
}
