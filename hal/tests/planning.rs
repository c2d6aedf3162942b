//! Rows, ladders, plans and decompositions, on a device that only counts.

use std::{ops::RangeInclusive, sync::Arc};
use tandem_hal::{
    Accumulator, Arena, Candidate, Capabilities, Cast, Class, Device, DeviceId, DeviceInfo,
    Dialect, Enc, Error, Extents, Fingerprint, Judge, Ladder, Layout, Mxfp8Linear, Needs, Numerics,
    Op, Operator, PORTABLE, Proven, Rank, Real, RmsNorm, RmsNormCast, RmsNormCastIo, Row, STEPS,
    Sym, View, Want,
    null::{Null, Table},
};

type Launch = fn(&Mxfp8Linear);

fn row(
    name: &'static str,
    bits: &'static str,
    rank: Rank,
    tokens: RangeInclusive<u64>,
) -> Row<Mxfp8Linear, Launch> {
    Row {
        name,
        arch: &["sm90"],
        rank,
        numerics: Numerics::RowInvariant,
        bits,
        accumulator: Accumulator::F32,
        tokens,
        accepts: |_, _| Ok(()),
        suits: |_| true,
        needs: |d, at| Needs { workspace_bytes: d.n * at.at(Sym::Tokens) },
        launch: |_| {},
    }
}

fn info() -> DeviceInfo {
    DeviceInfo {
        id: DeviceId(1),
        name: "cuda:0".into(),
        board: "h200".into(),
        arch: "sm90".into(),
        memory_bytes: 1 << 30,
        capabilities: Capabilities {
            dialect: Dialect::Fn,
            fp4_units: false,
            shared_memory_bytes: 232_448,
            lanes: 32,
        },
        rank: 0,
        ranks: 1,
    }
}

fn want(tokens: u64) -> Want {
    Want::row_invariant(Extents::of(&[(Sym::Tokens, tokens)]))
}

const LINEAR: Mxfp8Linear = Mxfp8Linear { n: 32, k: 32 };

fn rows() -> &'static [Row<Mxfp8Linear, Launch>] {
    Box::leak(Box::new([
        row("portable", "seq", Rank::Portable, 0..=u64::MAX),
        row("swap_ab", "k32", Rank::Tuned, 0..=64),
        row("wide", "k32", Rank::Tuned, 65..=u64::MAX),
    ]))
}

/// All rows are on record.
fn all(_: &Row<Mxfp8Linear, Launch>) -> Result<(), String> {
    Ok(())
}

/// No row is on record.
fn none(_: &Row<Mxfp8Linear, Launch>) -> Result<(), String> {
    Err("not proven on h200".into())
}

fn choose(
    rows: &'static [Row<Mxfp8Linear, Launch>],
    limit: u64,
    forced: Option<&str>,
    proven: Proven<'_, Mxfp8Linear, Launch>,
) -> tandem_hal::Result<Ladder<Mxfp8Linear, Launch>> {
    let (info, want) = (&info(), &want(limit));
    Judge { info, want, forced, proven, step_bits: &|_| None }.choose(rows, &LINEAR)
}

fn name_at(limit: u64, tokens: u64, proven: Proven<'_, Mxfp8Linear, Launch>) -> &'static str {
    let ladder = choose(rows(), limit, None, proven).expect("portable");
    ladder.at(tokens).expect("every token count").name
}

#[test]
fn a_ladder_covers_every_token_count_or_is_not_taken() {
    assert_eq!(name_at(8192, 3, &all), "swap_ab");
    assert_eq!(name_at(8192, 65, &all), "wide");
    let half = |row: &Row<_, _>| if row.name == "wide" { none(row) } else { Ok(()) };
    assert_eq!(name_at(8192, 3, &half), "portable", "half a set would tie bits to the load");
    assert_eq!(name_at(64, 3, &half), "portable", "nor may a plan's own limit choose");
    let ladder = choose(rows(), 100, None, &all).expect("tuned");
    assert_eq!((ladder.bits(), ladder.needs.workspace_bytes), ("k32", 3200));
}

#[test]
fn an_override_is_taken_as_it_is() {
    let forced = |name| choose(rows(), 8, Some(name), &none);
    let ladder = forced("swap_ab").expect("asked for by name");
    assert_eq!(ladder.at(64).map(|r| r.name), Some("swap_ab"));
    assert!(ladder.at(65).is_none());
    let ladder = forced("k32").expect("asked for by its bits");
    assert_eq!(ladder.at(65).map(|r| r.name), Some("wide"));
    let Err(error) = forced("warp") else { panic!("there is no such row") };
    assert!(error.to_string().contains("overridden by warp"), "{error}");
}

#[test]
fn every_refusal_has_its_reason() {
    let elsewhere = DeviceInfo { arch: "gfx942".into(), ..info() };
    let verdicts = |info: &DeviceInfo, proven| {
        let (want, forced) = (&want(1), None);
        Judge { info, want, forced, proven, step_bits: &|_| None }.verdicts(rows(), &LINEAR)
    };
    let list = verdicts(&elsewhere, &all);
    assert!(list.iter().all(|(_, v)| v.as_ref().is_err_and(|e| e == "made for sm90")));
    let list = verdicts(&info(), &none);
    let wide = list.iter().find(|(r, _)| r.name == "wide").expect("listed");
    assert_eq!(wide.1, Err("not proven on h200".into()));
    let no_rows: &'static [Row<Mxfp8Linear, Launch>] = &[];
    let Err(error) = choose(no_rows, 1, None, &all) else { panic!("there are no rows") };
    assert_eq!(error.to_string(), "gemm.mxfp8 is not supported here: no kernel yet");
}

#[test]
fn a_row_that_adds_in_less_than_f32_is_taken_by_name_only() {
    let make = |accumulator| Row { accumulator, ..row("wide", "k32", Rank::Tuned, 0..=u64::MAX) };
    let pick = |accumulator, forced| {
        let rows: &'static [_] = Box::leak(Box::new([make(accumulator)]));
        choose(rows, 1, forced, &all).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(pick(Accumulator::F32, None), Ok(()));
    assert_eq!(pick(Accumulator::Fp8Hopper, Some("wide")), Ok(()));
    let refused = pick(Accumulator::Fp8Hopper, None).unwrap_err();
    assert!(refused.contains("less than f32"), "{refused}");
}

#[test]
fn a_tuned_row_is_passed_over_where_it_does_not_suit() {
    let small = |d: &Mxfp8Linear| d.n > 32;
    let wide = Row { suits: small, ..row("wide", "k32", Rank::Tuned, 0..=u64::MAX) };
    let plain = row("portable", "seq", Rank::Portable, 0..=u64::MAX);
    let rows: &'static [_] = Box::leak(Box::new([wide, plain]));
    let name = |forced| choose(rows, 1, forced, &all).map(|ladder| ladder.rows[0].name);
    assert_eq!(name(None).ok(), Some("portable"));
    assert_eq!(name(Some("wide")).ok(), Some("wide"), "but for those who name it");
}

const FUSED: RmsNormCast = RmsNormCast { width: 64, eps: Real::new(1e-20) };

#[test]
fn a_fused_row_is_row_invariant_where_its_bits_are_those_of_the_steps() {
    type L = fn(&RmsNormCast);
    let make = |bits| Row::<RmsNormCast, L> {
        name: "one_pass",
        arch: &["sm90"],
        rank: Rank::Portable,
        numerics: Numerics::RowInvariant,
        bits,
        accumulator: Accumulator::F32,
        tokens: 0..=u64::MAX,
        accepts: |_, _| Ok(()),
        suits: |_| true,
        needs: |_, _| Needs::default(),
        launch: |_| {},
    };
    let pick = |bits, numerics, of_norm: &'static str| {
        let rows: &'static [_] = Box::leak(Box::new([make(bits)]));
        let (info, want) = (&info(), &Want { numerics, ..want(1) });
        let step_bits = |op: &Op| Some(if op.id() == RmsNorm::ID { of_norm } else { PORTABLE });
        let judge = Judge { info, want, forced: None, proven: &|_| Ok(()), step_bits: &step_bits };
        judge.choose(rows, &FUSED).map(|_| ()).map_err(|e| e.to_string())
    };
    let invariant = Numerics::RowInvariant;
    assert_eq!(pick(STEPS, invariant, PORTABLE), Ok(()));
    let refused = pick(STEPS, invariant, "tree").unwrap_err();
    assert!(refused.contains("those of the decomposition `steps norm.rms=tree`"), "{refused}");
    assert_eq!(pick("steps norm.rms=tree", invariant, "tree"), Ok(()));
    assert!(pick("steps norm.rms=tree", invariant, PORTABLE).is_err());
    assert_eq!(pick("own", Numerics::Deterministic, PORTABLE), Ok(()));
}

/// Rows for primitives only, of stated needs.
struct Primitives;

impl Table for Primitives {
    fn candidates(&self, op: &Op, _want: &Want) -> Vec<Candidate> {
        let fused = matches!(op, Op::RmsNormCast(_));
        let verdict = if fused { Err("none".into()) } else { Ok(Needs { workspace_bytes: 1000 }) };
        let (kernel, bits, rank) = ("portable", PORTABLE, Rank::Portable);
        vec![Candidate {
            kernel,
            rank,
            numerics: Numerics::RowInvariant,
            bits,
            accumulator: Accumulator::F32,
            verdict,
        }]
    }
    fn layout(&self, _class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        (Layout::Plain, View::reserved_bytes(enc, shape))
    }
}

#[test]
fn a_missing_fused_row_runs_as_its_steps() {
    let null = Null::new(info(), Some(Arc::new(Primitives)));
    let device: Arc<dyn Device> = Arc::new(null.clone());
    let plan = device.plan(FUSED, &want(4)).expect("by decomposition");
    assert_eq!((plan.kernel(4), plan.bits()), (STEPS, STEPS));
    let temp = View::reserved_bytes(Enc::BF16, &[4, 64]);
    assert_eq!(plan.workspace_bytes(), temp + 1000, "one temporary, then the larger step");
    let mut arena = Arena::new(&*device, 1 << 16, "test").expect("room");
    let x = arena.view(Enc::BF16, &[3, 64]).expect("room");
    let weight = arena.view(Enc::BF16, &[64]).expect("room");
    let y = arena.view(Enc::Q8, &[3, 64]).expect("room");
    let workspace = arena.view(Enc::U8, &[plan.workspace_bytes()]).expect("room");
    let small = workspace.rows(0..100).expect("inside");
    let stream = device.stream().expect("always");
    let io = || RmsNormCastIo { x: &x, weight: &weight, y: &y };
    let short = plan.launch(&*stream, &small, io()).expect_err("too little scratch");
    assert!(matches!(short, Error::BadOperand { operand: "workspace", .. }), "{short}");
    plan.launch(&*stream, &workspace, io()).expect("fits");
    let counted = null.counted();
    assert_eq!((counted.launches, counted.unknown), (2, 0));
    let steps = [
        RmsNorm { width: 64, eps: FUSED.eps }.cost(&want(3).limits),
        Cast { to: Enc::Q8, width: 64 }.cost(&want(3).limits),
    ];
    assert_eq!(counted.cost.read_bytes, steps.iter().map(|c| c.read_bytes).sum::<u64>());
}

/// Two rows of one ladder and another, by name, bits and need.
struct Ladders;

impl Table for Ladders {
    fn candidates(&self, _op: &Op, _want: &Want) -> Vec<Candidate> {
        let row = |(kernel, bits, workspace_bytes)| Candidate {
            kernel,
            rank: Rank::Tuned,
            numerics: Numerics::RowInvariant,
            bits,
            accumulator: Accumulator::F32,
            verdict: Ok(Needs { workspace_bytes }),
        };
        [("narrow", "k32", 10), ("wide", "k32", 700), ("plain", "seq", 9000)].map(row).into()
    }
    fn layout(&self, _class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        (Layout::Plain, View::reserved_bytes(enc, shape))
    }
}

#[test]
fn a_pretended_plan_has_room_for_every_row_of_its_ladder() {
    let device: Arc<dyn Device> = Arc::new(Null::new(info(), Some(Arc::new(Ladders))));
    let plan = device.plan(LINEAR, &want(1)).expect("a row");
    assert_eq!((plan.bits(), plan.workspace_bytes()), ("k32", 700));
}

#[test]
fn without_a_table_needs_are_unknown_and_counted_as_such() {
    let null = Null::new(info(), None);
    let device: Arc<dyn Device> = Arc::new(null.clone());
    let plan = device.plan(LINEAR, &want(1)).expect("everything is taken");
    assert_eq!(plan.kernel(1), "unknown");
    let mut arena = Arena::new(&*device, 1 << 16, "test").expect("room");
    let x = arena.view(Enc::Q8, &[1, 32]).expect("room");
    let weight = arena.view(Enc::MXFP8_TILE, &[32, 32]).expect("room");
    let y = arena.view(Enc::BF16, &[1, 32]).expect("room");
    let stream = device.stream().expect("always");
    let io = tandem_hal::Mxfp8LinearIo { x: &x, weight: &weight, y: &y };
    plan.launch(&*stream, &View::absent(Enc::U8), io).expect("fits");
    assert_eq!((null.counted().launches, null.counted().unknown), (1, 1));
}

#[test]
fn a_fingerprint_is_the_set_of_bits_not_their_order() {
    let device: Arc<dyn Device> = Arc::new(Null::new(info(), Some(Arc::new(Primitives))));
    let norm = device.plan(RmsNorm { width: 64, eps: FUSED.eps }, &want(1)).expect("a row");
    let wide = device.plan(RmsNorm { width: 96, eps: FUSED.eps }, &want(9)).expect("a row");
    let mut one = Fingerprint::default();
    one.add(&norm);
    one.add(&wide);
    let mut two = Fingerprint::default();
    two.add(&wide);
    two.add(&norm);
    two.add(&norm);
    assert_eq!(one, two);
    assert_ne!(one.value(), Fingerprint::default().value());
    assert_eq!(one.lines().next(), Some("norm.rms{width=64,eps=1e-20} portable"));
}

#[test]
fn lines_parse_back_and_say_what_is_wrong() {
    let op: Op = FUSED.into();
    assert_eq!(op.line(), "norm.rms_cast{width=64,eps=1e-20}");
    assert_eq!(Op::parse_line(&op.line()), Ok(op));
    assert!(Op::parse_line("norm.rms_cast{width=64}").is_err_and(|e| e.contains("eps")));
    assert!(Op::parse_line("norm.warp{}").is_err_and(|e| e.contains("norm.warp")));
}
