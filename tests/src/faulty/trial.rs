//! One trial per fault: the suite must catch it, by the property that names it.

use super::{
    fault::{FAULTS, Fault},
    provider::Faulty,
};
use crate::conformance::{
    arguments::Settings,
    case::Case,
    check::{RowTest, Scope},
    lane::Lane,
    operator::CATALOGUE,
    property::Property,
    suite::drawn_case,
};
use libtest_mimic::{Failed, Trial};
use std::{collections::BTreeSet, sync::Arc};
use tandem_hal::{Numerics, Provider, Want};
use tandem_reference::{Random, compare::Bias};

/// Drawn cases beyond the edges, at most: a fault that shows more seldom is missed.
const CASES: u64 = 64;

/// Every fault's trial, named `faulty/<operator>/<fault>`.
pub fn trials(settings: &Settings) -> Vec<Trial> {
    let trial = |fault: &Fault| {
        let (fault, seed) = (*fault, settings.seed);
        let name = format!("faulty/{}/{}", fault.op, fault.name);
        Trial::test(name, move || caught(fault, seed).map_err(Failed::from))
    };
    FAULTS.iter().map(trial).collect()
}

/// Run cases until the property that names the fault fails.
fn caught(fault: Fault, seed: u64) -> Result<(), String> {
    let provider: Arc<dyn Provider> = Arc::new(Faulty::new(fault));
    let mut lanes = Lane::of("faulty", &provider).map_err(|e| e.to_string())?;
    let lane = lanes.pop().ok_or("the reference has no device")?;
    let entry = CATALOGUE.iter().find(|e| e.id == fault.op).ok_or("no such operator")?;
    let edges = (entry.edges)();
    let (op, extents) = edges.first().ok_or("the card has no cases: it is not written")?;
    let free = lane.open(1, entry.id, None).map_err(|e| e.to_string())?;
    let want = Want { numerics: Numerics::Free, limits: *extents };
    let rows = free[0].candidates(op, &want);
    let row = rows.iter().find(|c| c.verdict.is_ok()).ok_or("no row takes the first edge")?;
    let test = RowTest::new(lane, *entry, row);
    let edges = edges.into_iter().enumerate().map(|(i, (op, extents))| Case {
        op,
        extents,
        seed: seed.wrapping_add(i as u64),
    });
    let drawn = (0..CASES).map(|i| {
        let mut random = Random::new(seed, i);
        let numbers: Vec<u64> = (0..64).map(|_| random.bits()).collect();
        drawn_case(entry, &numbers)
    });
    let (mut found, mut bias, mut first) = (BTreeSet::new(), Bias::default(), None);
    for case in edges.chain(drawn) {
        let scopes = if fault.property == Property::Views {
            &[Scope::Edges, Scope::Large][..]
        } else {
            &[Scope::Edges][..]
        };
        for scope in scopes {
            let verdict = test.check(&case, *scope);
            found.extend(verdict.findings.iter().map(|f| f.property));
            bias.join(verdict.bias);
            first = first.or(verdict.findings.first().map(|f| format!("{} {f}", case.line())));
        }
        if bias.verdict().is_err() {
            found.insert(Property::Bias);
        }
        if found.contains(&fault.property) {
            return Ok(());
        }
    }
    let named = fault.property.name();
    if found.is_empty() {
        return Err(format!("missed: no property fails, {named} should"));
    }
    let list: Vec<_> = found.iter().map(|p| p.name()).collect();
    let first = first.unwrap_or_default();
    Err(format!("caught by {} only, not by {named}; first: {first}", list.join(", ")))
}
