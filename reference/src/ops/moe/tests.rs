//! Check values, and the rows against each other.

use super::choice;
use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use crate::{Card, Host};
use tandem_hal::num::bf16;
use tandem_hal::{
    AddShared, AddSharedIo, Combine, CombineIo, CombineScaled, CombineScaledIo, Down, DownIo, Enc,
    Error, ExpertDown, ExpertDownIo, ExpertUp, ExpertUpIo, Experts, Extents, GateUp, GateUpIo,
    Real, Route, RouteGrouped, RouteGroupedIo, RouteHash, RouteHashIo, RouteIo, ScalePlacement,
    Swiglu, SwigluIo, Sym, View, Want,
};

/// An output, of bytes that no result has.
fn dirty(enc: Enc, shape: &[u64]) -> Buffer {
    Buffer::filled(enc, shape, 0xA5)
}
fn reals(shape: &[u64], values: &[f32]) -> Buffer {
    Buffer::of(Enc::F32, shape, values)
}
/// Rounded to bf16.
fn rounded(shape: &[u64], values: &[f32]) -> Buffer {
    Buffer::of(Enc::BF16, shape, values)
}

fn compute<D: Card>(d: &D, io: Host<'_, D>) {
    alone(|context| d.compute(io, context)).expect("nothing to exchange, nothing to fail");
}

/// `count` different, repeatable values.
fn pattern(count: u64, seed: u64) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 500.0 - 2.0).collect()
}

/// Equal to the digits shown.
fn near(got: &[f32], want: &[f32], relative: f32) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= relative * w.abs(), "got {got:?}, want {want:?}");
    }
}

/// Experts and weights of rows of logits, factor 1.5.
fn route(top_k: u64, bias: &[f32], logits: &[f32]) -> (Vec<i32>, Vec<f32>) {
    let experts = bias.len() as u64;
    let d = Route { experts, top_k, scale: Real::new(1.5), pictures: false };
    let rows = logits.len() as u64 / experts;
    let (none, bias) = (Buffer::absent(), reals(&[experts], bias));
    let logits = reals(&[rows, experts], logits);
    let mut expert = dirty(Enc::I32, &[rows, top_k]);
    let mut weight = dirty(Enc::F32, &[rows, top_k]);
    let io = RouteIo {
        logits: logits.tensor(),
        bias: bias.tensor(),
        bias_picture: none.tensor(),
        picture: none.tensor(),
        expert: expert.tensor_mut(),
        weight: weight.tensor_mut(),
    };
    compute(&d, io);
    (expert.integers(), weight.values())
}

#[test]
fn b5_scores_and_weights() {
    let logits = [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0];
    let want = [0.3562696, 0.5596978, 0.8325546, 1.1459763, 1.458399, 1.746_020_4];
    near(&logits.map(choice::score), &want, 4e-7);
    let (experts, weights) = route(2, &[0.0; 6], &logits);
    assert_eq!(experts, [5, 4]);
    near(&weights, &[0.8173183, 0.6826817], 2e-7);
}

#[test]
fn c022_all_rows_to_the_same_experts() {
    let logits: Vec<f32> = pattern(8, 3).repeat(64);
    let (experts, weights) = route(2, &[0.0; 8], &logits);
    assert!(experts.chunks(2).all(|e| *e == experts[..2]));
    assert!(weights.chunks(2).all(|w| *w == weights[..2]));
    let e = Experts { total: 8, first: 0, local: 8, top_k: 2, hidden: 32, inter: 32 };
    let row = pattern(32, 5);
    let many = gate_up(&e, &row.repeat(64), &experts);
    let one = gate_up(&e, &row, &experts[..2]);
    assert!(many.chunks(128).all(|y| *y == one[..]));
}

#[test]
fn c024_the_score_function_decides() {
    let (experts, weights) = route(2, &[0.5, 0.0, 0.0], &[0.0, 2.0, 5.0]);
    assert_eq!(experts, [2, 1]);
    near(&weights, &[0.908112, 0.591888], 1e-6);
}

#[test]
fn c025_extreme_logits() {
    let zero = [0.0; 4];
    for same in [-20.0, 100.0] {
        assert_eq!(route(2, &zero, &[same; 4]), (vec![0, 1], vec![0.75, 0.75]));
    }
    let (experts, weights) = route(2, &zero, &[-200.0; 4]);
    assert_eq!(experts, [0, 1]);
    assert!(weights.iter().all(|w| w.is_finite() && *w >= 0.0 && *w < 1e-20));
    // log(1 + exp(-17)) without losing the exponential beside the one.
    near(&[choice::score(-17.0).powi(2)], &[4.14e-8], 1e-3);
    let odd = [f32::INFINITY, 1.0, 2.0, 3.0, f32::NAN, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0];
    let (experts, weights) = route(2, &zero, &odd);
    assert_eq!(experts, [0, 3, 3, 2, 3, 2]);
    assert!(weights[0].is_nan());
    // A NaN that is not taken leaves the weights of its row alone too.
    assert_eq!(weights[2..4], weights[4..6]);
    let alone = route(2, &zero, &odd[8..]).1;
    assert_eq!(weights[4..], alone[..]);
}

#[test]
fn c026_the_bias_selects_but_does_not_weigh() {
    assert_eq!(route(2, &[0.0, 1.0, 2.0, 3.0], &[0.0; 4]), (vec![3, 2], vec![0.75, 0.75]));
    assert_eq!(route(2, &[0.0; 4], &[0.0; 4]), (vec![0, 1], vec![0.75, 0.75]));
}

#[test]
fn pictures_have_a_bias_of_their_own() {
    let d = Route { experts: 3, top_k: 1, scale: Real::new(1.5), pictures: true };
    let logits = reals(&[2, 3], &[0.0; 6]);
    let (bias, shown) = (reals(&[3], &[1.0, 0.0, 0.0]), reals(&[3], &[0.0, 0.0, 1.0]));
    let picture = Buffer::ints(&[2], &[0, 1]);
    let mut expert = dirty(Enc::I32, &[2, 1]);
    let mut weight = dirty(Enc::F32, &[2, 1]);
    let io = RouteIo {
        logits: logits.tensor(),
        bias: bias.tensor(),
        bias_picture: shown.tensor(),
        picture: picture.tensor(),
        expert: expert.tensor_mut(),
        weight: weight.tensor_mut(),
    };
    compute(&d, io);
    assert_eq!((expert.integers(), weight.values()), (vec![0, 2], vec![1.5, 1.5]));
}

/// One unit before rounding, after a look at what the card writes for it.
fn swiglu(gate: f32, up: f32, limit: f32) -> f32 {
    let exact = super::swiglu::unit(gate, up, limit, 1.0);
    let d = Swiglu { slots: 1, inter: 1, limit: Real::new(limit), weighted: false };
    let (x, none) = (rounded(&[1, 2], &[gate, up]), Buffer::absent());
    let mut y = dirty(Enc::BF16, &[1, 1]);
    compute(&d, SwigluIo { x: x.tensor(), weight: none.tensor(), y: y.tensor_mut() });
    assert_eq!(y.values(), [bf16::round_f64(exact)]);
    exact as f32
}

#[test]
fn b6_and_c027_clamps_of_the_gated_unit() {
    let pairs = [(12.0, -15.0), (-3.0, 2.0), (0.5, 11.0), (20.0, -30.0), (-20.0, 1.0)];
    let got = pairs.map(|(g, u)| swiglu(g, u, 10.0));
    near(&got, &[-99.99546, -0.2845552, 3.1122967, -99.99546, -4.1223e-8], 2e-6);
    near(&[swiglu(20.0, -30.0, 0.0)], &[-600.0], 1e-6);
}

#[test]
fn the_routing_weight_comes_before_the_rounding() {
    let d = Swiglu { slots: 2, inter: 1, limit: Real::new(10.0), weighted: true };
    let x = rounded(&[1, 4], &[1.0, 1.0, 1.0, 1.0]);
    let weight = reals(&[1, 2], &[1.003, f32::NAN]);
    let mut y = dirty(Enc::BF16, &[1, 2]);
    compute(&d, SwigluIo { x: x.tensor(), weight: weight.tensor(), y: y.tensor_mut() });
    let want = bf16::round_f64(0.731_058_578_630_004_9 * f64::from(1.003f32));
    assert_eq!(y.values()[0], want);
    assert!(y.values()[1].is_nan());
}

/// Weights of `[local, n, k]` with distinct values.
fn stacked(e: &Experts, n: u64, k: u64, seed: u64) -> Buffer {
    Buffer::of(Enc::MXFP4, &[e.local, n, k], &pattern(e.local * n * k, seed))
}

fn gate_up(e: &Experts, x: &[f32], expert: &[i32]) -> Vec<f32> {
    let t = x.len() as u64 / e.hidden;
    let (w1, w3) = (stacked(e, e.inter, e.hidden, 1), stacked(e, e.inter, e.hidden, 2));
    let (x, expert) = (Buffer::of(Enc::Q8, &[t, e.hidden], x), Buffer::ints(&[t, e.top_k], expert));
    let mut y = dirty(Enc::BF16, &[t, e.top_k * 2 * e.inter]);
    let io = GateUpIo {
        x: x.tensor(),
        expert: expert.tensor(),
        w1: w1.tensor(),
        w3: w3.tensor(),
        y: y.tensor_mut(),
    };
    compute(&GateUp { experts: e.clone() }, io);
    y.values()
}

fn down(e: &Experts, w2: &Buffer, x: &[f32], expert: &[i32]) -> Vec<f32> {
    let t = expert.len() as u64 / e.top_k;
    let x = Buffer::of(Enc::Q8, &[t, e.top_k * e.inter], x);
    let expert = Buffer::ints(&[t, e.top_k], expert);
    let mut y = dirty(Enc::BF16, &[t, e.top_k * e.hidden]);
    let io = DownIo { x: x.tensor(), expert: expert.tensor(), w2: w2.tensor(), y: y.tensor_mut() };
    compute(&Down { experts: e.clone() }, io);
    y.values()
}

/// Two experts of 32 x 32, all elements one and two.
fn ones_and_twos() -> (Experts, Buffer) {
    let e = Experts { total: 2, first: 0, local: 2, top_k: 1, hidden: 32, inter: 32 };
    let values: Vec<f32> = [1.0, 2.0].iter().flat_map(|v| [*v; 1024]).collect();
    (e, Buffer::of(Enc::MXFP4, &[2, 32, 32], &values))
}

#[test]
fn c016_few_rows_per_expert() {
    let (e, w2) = ones_and_twos();
    for capacity in [1usize, 8, 16, 32, 63, 64] {
        let expert: Vec<i32> = [vec![0; capacity.min(3)], vec![1; capacity]].concat();
        let got = down(&e, &w2, &vec![1.0; expert.len() * 32], &expert);
        let want: Vec<f32> = expert.iter().flat_map(|e| [32.0 * (*e + 1) as f32; 32]).collect();
        assert_eq!(got, want, "capacity {capacity}");
    }
}

#[test]
fn c017_slots_without_an_expert_are_zero() {
    let (e, w2) = ones_and_twos();
    let got = down(&e, &w2, &[1.0; 4 * 32], &[0, 0, -1, 1]);
    let want: Vec<f32> = [32.0, 32.0, 0.0, 64.0].iter().flat_map(|v| [*v; 32]).collect();
    assert_eq!(got, want);
    let outside = down(&e, &w2, &[1.0; 2 * 32], &[2, i32::MIN]);
    assert_eq!(outside, [0.0; 64]);
}

#[test]
fn a_rank_serves_its_own_experts_only() {
    let (all, w2) = ones_and_twos();
    let half = Experts { first: 1, local: 1, ..all.clone() };
    let own = Buffer::of(Enc::MXFP4, &[1, 32, 32], &[2.0; 1024]);
    let expert = [0, 1, 0];
    let whole = down(&all, &w2, &[1.0; 96], &expert);
    let part = down(&half, &own, &[1.0; 96], &expert);
    assert_eq!(part[32..64], whole[32..64]);
    assert!(part[..32].iter().chain(&part[64..]).all(|v| *v == 0.0));
}

fn combine(e: &Experts, x: &[f32], expert: &[i32]) -> Vec<f32> {
    let t = expert.len() as u64 / e.top_k;
    let x = rounded(&[t, e.top_k * e.hidden], x);
    let expert = Buffer::ints(&[t, e.top_k], expert);
    let mut y = dirty(Enc::F32, &[t, e.hidden]);
    let io = CombineIo { x: x.tensor(), expert: expert.tensor(), y: y.tensor_mut() };
    compute(&Combine { experts: e.clone() }, io);
    y.values()
}

#[test]
fn sums_run_by_ascending_expert_and_skip_what_is_not_held() {
    let e = Experts { total: 4, first: 0, local: 4, top_k: 3, hidden: 32, inter: 32 };
    let big = 2f32.powi(60);
    // In order of experts 0, 1, 2 the one survives; in order of the slots it would not.
    let slots = [[1.0; 32], [big; 32], [-big; 32]].concat();
    assert_eq!(combine(&e, &slots, &[2, 0, 1]), [1.0; 32]);
    let x = [[1.0; 32], [f32::NAN; 32], [2.0; 32]].concat();
    assert_eq!(combine(&e, &x, &[0, -1, 3]), [3.0; 32]);
    let rank = Experts { first: 0, local: 2, ..e };
    assert_eq!(combine(&rank, &x, &[0, 3, 3]), [1.0; 32]);
}

#[test]
fn c023_the_factor_applies_exactly_once() {
    // Two experts that answer 1: the weights carry the factor, the sum is 1.5, the shared joins.
    let (_, weights) = route(2, &[0.0; 4], &[0.0; 4]);
    let routed = reals(&[1, 1], &[weights.iter().sum()]);
    let shared = rounded(&[1, 1], &[10.0]);
    let mut y = dirty(Enc::BF16, &[1, 1]);
    let io = AddSharedIo { routed: routed.tensor(), shared: shared.tensor(), y: y.tensor_mut() };
    compute(&AddShared { hidden: 1 }, io);
    assert_eq!(y.values(), [11.5]);
}

fn scaled(placement: ScalePlacement, factor: f32, x: &[f32], w: &[f32], s: f32) -> f32 {
    let k = w.len() as u64;
    let d = CombineScaled { top_k: k, hidden: 1, factor: Real::new(factor), placement };
    let (x, weight) = (reals(&[1, k, 1], x), reals(&[1, k], w));
    let (shared, mut y) = (reals(&[1, 1], &[s]), dirty(Enc::F32, &[1, 1]));
    let (x, weight, shared) = (x.tensor(), weight.tensor(), shared.tensor());
    compute(&d, CombineScaledIo { x, weight, shared, y: y.tensor_mut() });
    y.values()[0]
}

#[test]
fn three_places_of_the_factor_agree() {
    for placement in ScalePlacement::ALL {
        assert_eq!(scaled(*placement, 1.5, &[1.0, 1.0], &[0.5, 0.5], 10.0), 11.5);
    }
    for factor in [1.0, 1.5, 2.5, 16.0] {
        let (x, w) = (pattern(6, 1), [0.3, 0.2, 0.2, 0.1, 0.1, 0.1]);
        let each: Vec<f32> =
            ScalePlacement::ALL.iter().map(|p| scaled(*p, factor, &x, &w, 0.7)).collect();
        near(&each, &[each[0]; 3], 1e-6);
        let routed: f32 = x.iter().zip(w).map(|(x, w)| x * w).sum();
        near(&each, &[factor * routed + 0.7; 3], 1e-5);
    }
}

#[test]
fn c028_no_tokens() {
    let e = Experts { total: 2, first: 0, local: 2, top_k: 1, hidden: 32, inter: 32 };
    assert!(gate_up(&e, &[], &[]).is_empty());
    assert!(combine(&e, &[], &[]).is_empty());
    assert_eq!(route(2, &[0.0; 4], &[]), (vec![], vec![]));
}

#[test]
fn c029_packed_width_is_not_the_logical_one() {
    let e = Experts { total: 1, first: 0, local: 1, top_k: 1, hidden: 32, inter: 64 };
    let w2 = Buffer::of(Enc::MXFP4, &[1, 32, 64], &[1.0; 2048]);
    assert_eq!(
        w2.codes.len() + w2.scales.len(),
        32 * 32 + 32 * 2,
        "thirty-two bytes a row and two scales"
    );
    assert_eq!(down(&e, &w2, &[1.0; 64], &[0]), [64.0; 32]);
}

#[test]
fn c029_a_packed_width_is_refused() {
    let device = crate::RefDevice::with(&crate::Setup::default());
    let device: &dyn tandem_hal::Device = &device;
    let mut arena = tandem_hal::Arena::new(device, 1 << 16, "test").expect("memory");
    let e = Experts { total: 1, first: 0, local: 1, top_k: 1, hidden: 32, inter: 64 };
    let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 4)]));
    let plan = device.plan(Down { experts: e }, &want).expect("a row");
    let mut view = |enc, shape: &[u64]| arena.view(enc, shape).expect("room");
    let x = view(Enc::Q8, &[1, 32]);
    let (expert, w2) = (view(Enc::I32, &[1, 1]), view(Enc::MXFP4, &[1, 32, 64]));
    let (y, none) = (view(Enc::BF16, &[1, 32]), View::absent(Enc::U8));
    let stream = device.stream().expect("a stream");
    let io = DownIo { x: &x, expert: &expert, w2: &w2, y: &y };
    let error = plan.launch(&*stream, &none, io).expect_err("a width of 32 is not 64");
    assert!(matches!(error, Error::BadOperand { operand: "x", .. }), "{error}");
}

#[test]
fn fused_rows_have_the_bits_of_their_steps() {
    let e = Experts { total: 5, first: 1, local: 3, top_k: 2, hidden: 64, inter: 32 };
    let (t, expert) = (4u64, [1, 3, 0, 2, -1, 1, 2, 9]);
    let (x, weights) = (pattern(t * e.hidden, 4), pattern(t * e.top_k, 9));
    let both = gate_up(&e, &x, &expert);
    let limit = Real::new(0.5);
    let (both, weight) = (rounded(&[t, e.top_k * 64], &both), reals(&[t, e.top_k], &weights));
    let mut unit = dirty(Enc::BF16, &[t, e.top_k * e.inter]);
    let swiglu = Swiglu { slots: e.top_k, inter: e.inter, limit, weighted: true };
    compute(&swiglu, SwigluIo { x: both.tensor(), weight: weight.tensor(), y: unit.tensor_mut() });
    let cast = Buffer::of(Enc::Q8, &[t, e.top_k * e.inter], &unit.values());

    let (w1, w3) = (stacked(&e, e.inter, e.hidden, 1), stacked(&e, e.inter, e.hidden, 2));
    let (xs, experts) = (Buffer::of(Enc::Q8, &[t, e.hidden], &x), Buffer::ints(&[t, 2], &expert));
    let mut y = dirty(Enc::Q8, &[t, e.top_k * e.inter]);
    let io = ExpertUpIo {
        x: xs.tensor(),
        expert: experts.tensor(),
        weight: weight.tensor(),
        w1: w1.tensor(),
        w3: w3.tensor(),
        y: y.tensor_mut(),
    };
    compute(&ExpertUp { experts: e.clone(), limit }, io);
    assert_eq!(y, cast);

    let w2 = stacked(&e, e.hidden, e.inter, 3);
    let each = down(&e, &w2, &unit.values(), &expert);
    let sums = combine(&e, &each, &expert);
    let mut y = dirty(Enc::F32, &[t, e.hidden]);
    let (x, expert) = (cast.tensor(), experts.tensor());
    let io = ExpertDownIo { x, expert, w2: w2.tensor(), y: y.tensor_mut() };
    compute(&ExpertDown { experts: e }, io);
    assert_eq!(y.values(), sums);
}

fn route_grouped(d: &RouteGrouped, logits: &[f32], bias: &[f32]) -> (Vec<i32>, Vec<f32>) {
    let rows = logits.len() as u64 / d.experts;
    let logits = reals(&[rows, d.experts], logits);
    let bias = reals(&[d.experts], bias);
    let mut expert = dirty(Enc::I32, &[rows, d.top_k]);
    let mut weight = dirty(Enc::F32, &[rows, d.top_k]);
    let (logits, bias) = (logits.tensor(), bias.tensor());
    compute(
        d,
        RouteGroupedIo { logits, bias, expert: expert.tensor_mut(), weight: weight.tensor_mut() },
    );
    (expert.integers(), weight.values())
}

#[test]
fn groups_are_chosen_by_their_two_best_keys() {
    let scale = Real::new(2.5);
    let d = RouteGrouped { experts: 8, groups: 4, groups_taken: 2, top_k: 3, scale };
    // The best single expert is in group 0, but groups 2 and 3 have the best pairs.
    let logits = [5.0, -9.0, -2.0, -2.0, 1.0, 1.5, 2.0, 0.5];
    let (experts, weights) = route_grouped(&d, &logits, &[0.0; 8]);
    assert_eq!(experts, [6, 5, 4]);
    assert!((weights.iter().sum::<f32>() - 2.5).abs() < 1e-6);
    // All equal: the lowest groups, then the lowest experts.
    let (experts, weights) = route_grouped(&d, &[0.0; 8], &[0.0; 8]);
    assert_eq!(experts, [0, 1, 2]);
    near(&weights, &[2.5 / 3.0; 3], 1e-6);
    // A bias that decides the groups, with a tie across two of them.
    let bias = [0.0, 0.0, 3.0, 3.0, 0.0, 0.0, 3.0, 3.0];
    assert_eq!(route_grouped(&d, &[0.0; 8], &bias).0, [2, 3, 6]);
}

#[test]
fn hashed_experts_come_from_the_table() {
    let d = RouteHash { vocab: 3, experts: 4, top_k: 2, scale: Real::new(1.5) };
    let table = Buffer::ints(&[3, 2], &[3, 1, 0, 2, 1, 7]);
    let id = Buffer::ints(&[4], &[0, 2, 3, -1]);
    let logits = reals(&[4, 4], &[1.0; 16]);
    let mut expert = dirty(Enc::I32, &[4, 2]);
    let mut weight = dirty(Enc::F32, &[4, 2]);
    let io = RouteHashIo {
        logits: logits.tensor(),
        id: id.tensor(),
        table: table.tensor(),
        expert: expert.tensor_mut(),
        weight: weight.tensor_mut(),
    };
    compute(&d, io);
    assert_eq!(expert.integers(), [3, 1, 1, -1, -1, -1, -1, -1]);
    assert_eq!(weight.values(), [0.75, 0.75, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn rows_of_every_operator_agree() {
    fn agree<D: Card>() {
        edges_agree::<D>();
        draws_agree::<D>(20);
    }
    agree::<Route>();
    agree::<GateUp>();
    agree::<Swiglu>();
    agree::<Down>();
    agree::<Combine>();
    agree::<AddShared>();
    agree::<ExpertUp>();
    agree::<ExpertDown>();
    agree::<RouteGrouped>();
    agree::<RouteHash>();
    agree::<CombineScaled>();
}
