//! Property 13: host misuse is a typed error that names the operand and changes no byte.

use crate::conformance::{
    bench::How,
    operator::{self, Launch},
    stage::Stage,
    subject::{Base, Subject},
};
use tandem_hal::{
    Device, Dim, Dir, Domain, Enc, Error, Layout, Operand, Place, Result, Stream, View,
};

/// One wrong launch.
struct Wrong {
    what: String,
    views: Vec<View>,
    workspace: View,
}

/// Every misuse that fits the operator, one launch each.
///
/// # Errors
/// What building the right launch returns.
pub fn check(s: &Subject<'_>, base: &Base) -> Result<Option<String>> {
    let (case, facts) = (s.bench.case, s.bench.facts);
    let ([device], [data]) = (s.bench.devices, &base.data[..]) else { return Ok(None) };
    let (plan, stage) = s.bench.stage(device, &case.extents, data, &How::default())?;
    let before = stage.seen()?;
    let mut wrongs = wrong_views(s, &stage)?;
    if plan.workspace_bytes() > 0 {
        let memory = device.allocate(256, Place::Device, "misuse")?;
        let workspace = View::dense(&memory, 0, Enc::U8, &[plan.workspace_bytes().min(256) - 1])?;
        let what = "a workspace that is too small".into();
        wrongs.push(Wrong { what, views: stage.views.clone(), workspace });
    }
    let attempt = |what: &str, plan: &dyn Launch, on: &dyn Stream, wrong: &Wrong| {
        let refused = plan.launch(on, &wrong.workspace, &wrong.views);
        let said = match refused {
            Err(Error::BadOperand { .. } | Error::ForeignObject { .. }) => None,
            Err(other) => Some(format!("{what} gives another kind of error: {other}")),
            Ok(()) => Some(format!("{what} is launched")),
        };
        let after = stage.seen()?;
        let moved = (after != before).then(|| format!("{what} is refused, yet bytes changed"));
        Ok(said.or(moved))
    };
    for wrong in &wrongs {
        let what = attempt(&wrong.what, &*plan, &*stage.stream, wrong)?;
        if what.is_some() {
            return Ok(what);
        }
    }
    let right = Wrong {
        what: String::new(),
        views: stage.views.clone(),
        workspace: stage.workspace.clone(),
    };
    let alien = s.stranger.stream()?;
    let what = attempt("a stream of another device", &*plan, &*alien, &right)?;
    let n = case.extents.at(facts.rows);
    if what.is_some() || n == 0 || !facts.operands.iter().any(|(_, _, o)| has(o, facts.rows)) {
        return Ok(what);
    }
    let less = s.bench.want(case.extents.with(facts.rows, n - 1));
    let small = operator::plan(&case.op, &**device, &less)?;
    attempt("a launch beyond the planned extents", &*small, &*stage.stream, &right)
}

fn has(operand: &Operand, sym: tandem_hal::Sym) -> bool {
    !operand.absent && operand.dims.contains(&Dim::Of(sym))
}

/// Every operand replaced by one of the wrong encoding, shape, device or place.
fn wrong_views(s: &Subject<'_>, stage: &Stage) -> Result<Vec<Wrong>> {
    let (case, facts, device) = (s.bench.case, s.bench.facts, &s.bench.devices[0]);
    let mut wrongs = vec![];
    for (i, (name, dir, spec)) in facts.operands.iter().enumerate() {
        let mut replace = |what: &str, by: &[(usize, View)]| {
            let mut views = stage.views.clone();
            for (i, view) in by {
                views[*i] = view.clone();
            }
            let (what, workspace) = (format!("{name} with {what}"), stage.workspace.clone());
            wrongs.push(Wrong { what, views, workspace });
        };
        let shape = spec.shape(&case.extents);
        if spec.absent || shape.contains(&0) {
            continue;
        }
        let other = if spec.enc == Enc::U8 { Enc::I32 } else { Enc::U8 };
        replace("another encoding", &[(i, fresh(&**device, other, &shape)?)]);
        if fixed(spec) {
            let mut longer = shape.clone();
            *longer.last_mut().expect("a shape has an axis") += 32;
            replace("another shape", &[(i, fresh(&**device, spec.enc, &longer)?)]);
            replace("nothing given", &[(i, View::absent(spec.enc))]);
        }
        if stage.views[i].layout() == Layout::Plain {
            let abroad = fresh(&**s.stranger, spec.enc, &shape)?;
            replace("memory of another device", &[(i, abroad)]);
        }
        if *dir == Dir::In {
            continue;
        }
        for (j, (_, _, input)) in facts.operands.iter().enumerate().filter(|(j, _)| *j != i) {
            let theirs = input.shape(&case.extents);
            let private = stage.views[j].layout() != Layout::Plain;
            if input.absent || theirs.contains(&0) || private {
                continue;
            }
            let bytes = View::reserved_bytes(spec.enc, &shape)
                .max(View::reserved_bytes(input.enc, &theirs));
            let memory = device.allocate(bytes, Place::Device, "misuse")?;
            let mine = View::dense(&memory, 0, spec.enc, &shape)?;
            let other = View::dense(&memory, 0, input.enc, &theirs)?;
            replace("the bytes of another operand", &[(i, mine), (j, other)]);
        }
    }
    Ok(wrongs)
}

/// Whether the last extent is the descriptor's, and no weight layout stands in front of the check.
fn fixed(spec: &Operand) -> bool {
    let last_is_fixed = matches!(spec.dims.last(), Some(Dim::Is(_)));
    last_is_fixed && !matches!(spec.domain, Domain::Weight(_))
}

fn fresh(device: &dyn Device, enc: Enc, shape: &[u64]) -> Result<View> {
    let memory = device.allocate(View::reserved_bytes(enc, shape), Place::Device, "misuse")?;
    View::dense(&memory, 0, enc, shape)
}
