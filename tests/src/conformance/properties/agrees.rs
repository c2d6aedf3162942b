//! Properties 1, 2 and 3: the right values, nothing else touched, twice the same.

use crate::conformance::{
    bench::{Fill, How},
    expect::expected,
    outputs,
    property::{Finding, Property},
    subject::{Base, Subject},
};
use tandem_hal::{Numerics, Result};
use tandem_reference::{Fill as Data, compare::Bias};

/// The first launch of a case, compared with the card; what later checks compare with.
///
/// # Errors
/// What the card, planning or the device returns.
pub fn check(s: &Subject<'_>, findings: &mut Vec<Finding>) -> Result<(Base, Bias)> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let mut find = |property, what: Option<String>| {
        findings.extend(what.map(|what| Finding { property, what }));
    };
    let data = case.data(facts, Data::of_seed(case.seed));
    let want = expected(&case.op, facts, &case.extents, &data)?;
    find(Property::Agrees, outputs::magnitude(&case.op, facts, &want));
    let seen = s.bench.run(&case.extents, &data, &How::default())?;
    find(
        Property::Agrees,
        outputs::judged(&case.op, facts, &case.extents, s.accumulator, &seen, &want),
    );
    find(Property::Guards, outputs::trespass(&seen));
    let bias = outputs::bias(facts, &seen, &want);

    let zero = How { fill: Fill::Zero, ..How::default() };
    let second = s.bench.run(&case.extents, &data, &zero)?;
    find(Property::Guards, outputs::trespass(&second));
    let why = "depends on what stood in outputs, scratch or between operands";
    if let Some(what) = outputs::same(facts, &case.extents, &second, &seen, why) {
        // What alternates would agree with one repetition.
        let mut again = None;
        for _ in 0..2 {
            let third = s.bench.run(&case.extents, &data, &How::default())?;
            let differs =
                outputs::same(facts, &case.extents, &third, &seen, "a second run differs");
            again = again.or(differs);
        }
        if again.is_none() {
            find(Property::Guards, Some(what));
        } else if s.promise >= Numerics::Deterministic {
            find(Property::Repeats, again);
        }
    }
    Ok((Base { data, seen }, bias))
}
