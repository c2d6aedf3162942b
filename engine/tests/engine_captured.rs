//! The demo model gives the same logits and tokens, to the bit, however its engine runs: launch by
//! launch or through captured graphs, with weights in any layout, in any chunks, and, as far as the
//! tokens agree, with drafts and without.

mod engine_support;
mod model_support;

use engine_support::{Answer, answers, prompt};
use model_support::demo::{self, Recorder};
use model_support::guarded::{Guarded, Ran};
use model_support::witness::{Logits, Witness};
use std::cell::Cell;
use std::sync::Arc;
use tandem_engine::Result;
use tandem_engine::exec::{
    DraftLists, Drafter, Engine, EngineOptions, Event, Forward, Geometry, Graphs, Network, Request,
    RequestId, Runner, Sample, Sampled, StepLists, StepShape,
};
use tandem_engine::sample::SamplingParameters;
use tandem_hal::{Device, Enc, Place, Rule, View};
use tandem_reference::{RefDevice, Setup, Weights};

/// How an engine runs.
#[derive(Debug, Clone, Copy)]
struct How {
    weights: Weights,
    captured: Option<Graphs>,
    draft_tokens: u64,
    least_survival: f64,
    chunk_tokens: u64,
}

/// What came of it.
struct Outcome {
    answers: Vec<Answer>,
    logits: Logits,
    replays: u64,
}

fn options(chunk_tokens: u64, draft_tokens: u64) -> EngineOptions {
    EngineOptions {
        sequences: 4,
        step_tokens: 64,
        chunk_tokens,
        pages: 32,
        context_tokens: 1024,
        draft_tokens,
        step_sizes: vec![2, 3],
        ..engine_support::options()
    }
}

fn runner(
    device: &Arc<dyn Device>,
    captured: Option<Graphs>,
    options: &EngineOptions,
) -> Runner<Recorder> {
    let resident = Recorder::new(demo::resident(device.as_ref(), true, options));
    let mut runner = Runner::new(device, resident, options, Rule::Block).unwrap();
    if let Some(graphs) = captured {
        let reserved = device.ledger();
        runner.capture(&EngineOptions { graphs, ..options.clone() }).unwrap();
        assert_eq!(device.ledger(), reserved, "a capture reserved something");
        let (parts, eager) = runner.captured();
        let drafts = if options.draft_tokens > 0 { options.step_sizes.len() } else { 0 };
        let whole = StepShape::all(options, runner.network().geometry()).len() + drafts;
        match graphs {
            Graphs::Full => assert_eq!((parts, eager), (whole, 0)),
            // Each of the nine layers attends.
            Graphs::Segments => {
                assert!(parts > 2 * whole && eager >= 3 * whole, "{parts}, {eager}");
            }
        }
    }
    runner
}

fn run(how: How) -> Outcome {
    let setup = Setup { weights: how.weights, ..Setup::default() };
    let device: Arc<dyn Device> = Arc::new(RefDevice::with(&setup));
    let options = EngineOptions {
        least_survival: how.least_survival,
        ..options(how.chunk_tokens, how.draft_tokens)
    };
    let runner = runner(&device, how.captured, &options);
    let reserved = device.ledger();
    let witness = Witness { poisons: true, ..Witness::new(runner) };
    let mut engine = Engine::new(witness, options).unwrap();
    let answers = answers(&mut engine, requests());
    assert_eq!(device.ledger(), reserved, "something was reserved after the start");
    let Witness { runner, logits, .. } = engine.model();
    let poisoned = runner.network().poison(runner.stream());
    assert!(poisoned > 1 << 20, "{poisoned} bytes of scratch");
    Outcome { answers, logits: logits.clone(), replays: runner.replays() }
}

/// Four at first, so that no size is large enough; later three, two and one. The last is sampled.
fn requests() -> Vec<Request> {
    let request = |(at, (prompt_tokens, max_tokens)): (u64, (u64, u64))| Request {
        max_tokens: Some(max_tokens),
        sampling: SamplingParameters {
            temperature: if at == 3 { 0.9 } else { 0.0 },
            seed: Some(at),
            ..Default::default()
        },
        ..engine_support::request(prompt(at, prompt_tokens), max_tokens)
    };
    (0..).zip([(5, 16), (70, 4), (130, 8), (23, 12)]).map(request).collect()
}

fn compare(how: How, plain: &Outcome) {
    let outcome = run(how);
    println!("{how:?}: {} replays", outcome.replays);
    assert_eq!(outcome.replays > 0, how.captured.is_some(), "{how:?}");
    for (at, (got, expected)) in outcome.answers.iter().zip(&plain.answers).enumerate() {
        assert_eq!(got.tokens, expected.tokens, "{how:?}, request {at}");
    }
    assert_eq!(outcome.logits.len(), plain.logits.len(), "{how:?}");
    assert!(outcome.logits == plain.logits, "{how:?}: logits differ");
}

/// Everything that a step computes anew is NaN when it begins.
#[test]
fn captured_or_not_in_any_layout_and_any_chunks() {
    let mut plain = vec![];
    let (full, segments) = (Some(Graphs::Full), Some(Graphs::Segments));
    for draft_tokens in [0, 5] {
        let how = How {
            weights: Weights::Plain,
            captured: None,
            draft_tokens,
            least_survival: 0.0,
            chunk_tokens: 64,
        };
        let outcome = run(how);
        for (weights, captured, chunk_tokens) in [
            (Weights::Plain, full, 64),
            (Weights::Plain, segments, 64),
            (Weights::Expanded, None, 11),
            (Weights::Expanded, full, 1),
            (Weights::Scrambled, None, 30),
            (Weights::Scrambled, segments, 64),
        ] {
            compare(How { weights, captured, chunk_tokens, ..how }, &outcome);
        }
        plain.push(outcome);
    }
    let [without, with] = &plain[..] else { panic!("two runs") };
    let mut common = 0;
    for (text, logits) in &without.logits {
        if let Some(other) = with.logits.get(text) {
            assert!(logits == other, "logits after {} tokens differ", text.len());
            common += 1;
        }
    }
    // Greedy requests say the same with drafts; the sampled one starts the same.
    for (one, other) in without.answers.iter().zip(&with.answers).take(3) {
        assert_eq!(one.tokens, other.tokens);
    }
    assert!(common > 16 + 4 + 8, "{common}");
    let accepted: u64 = with.answers.iter().map(|answer| answer.usage.accepted_tokens).sum();
    println!("{common} texts in common, {accepted} drafts stood");
    assert!(accepted > 0, "no draft stood");
}

/// Steps that verify fewer drafts run as captured for so many rows, and say the same.
#[test]
fn captured_or_not_with_drafts_that_are_cut() {
    let (weights, least_survival) = (Weights::Plain, 0.05);
    let how = How { weights, captured: None, draft_tokens: 5, least_survival, chunk_tokens: 64 };
    let cut = run(how);
    compare(How { captured: Some(Graphs::Full), ..how }, &cut);
    let whole = run(How { captured: None, least_survival: 0.0, ..how });
    let drafted = |outcome: &Outcome| -> u64 {
        outcome.answers.iter().map(|answer| answer.usage.drafted_tokens).sum()
    };
    println!("{} of {} drafts verified", drafted(&cut), drafted(&whole));
    assert!(0 < drafted(&cut) && drafted(&cut) < drafted(&whole));
    for (one, other) in cut.answers.iter().zip(&whole.answers).take(3) {
        assert_eq!(one.tokens, other.tokens);
    }
}

/// Nine of different lengths, so that rows complete groups and pages at different times.
fn crowd() -> Vec<Request> {
    (0..9).map(|at| engine_support::request(prompt(at, 2 + at), 4)).collect()
}

/// The demo among guards, with sizes of steps captured or without.
fn guarded(draft_tokens: u64, step_sizes: Vec<u64>) -> Engine<Guarded> {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = EngineOptions {
        sequences: 9,
        step_tokens: 64,
        pages: 16,
        context_tokens: 128,
        draft_tokens,
        step_sizes,
        ..engine_support::options()
    };
    let runner = runner(&device, Some(Graphs::Full), &options);
    Engine::new(Guarded::new(Witness::new(runner)), options).unwrap()
}

/// Whatever a captured step is padded with, live rows are those of a run without graphs and no
/// other record of a cache changes.
#[test]
fn c090_padding_writes_nothing() {
    for draft_tokens in [0, 5] {
        let mut plain = guarded(draft_tokens, vec![]);
        plain.model().put_guards();
        let expected = answers(&mut plain, crowd());
        let plain = &plain.model().witness;
        assert_eq!(plain.runner.replays(), 0);
        let mut engine = guarded(draft_tokens, vec![4, 8]);
        let mut before = 0;
        let all = [(3, 4), (4, 4), (5, 8), (7, 8), (9, 9)];
        let some = if draft_tokens == 0 { all.as_slice() } else { &all[..1] };
        for &(count, rows) in some {
            engine.model().put_guards();
            let got = answers(&mut engine, crowd()[..count].to_vec());
            for (got, expected) in got.iter().zip(&expected) {
                assert_eq!(got.tokens, expected.tokens, "{count} requests");
            }
            let steps = &engine.model().steps[before..];
            before += steps.len();
            if draft_tokens == 0 {
                // The prompts, then a token each.
                let decode = Ran { live_rows: count, rows, captured: count < 9 };
                assert_eq!(steps[1..], [decode; 3]);
            } else {
                let padded = |ran: &&Ran| ran.captured && ran.live_rows < ran.rows;
                assert!(steps.iter().any(|ran| padded(&ran)), "{steps:?}");
            }
        }
        for (text, logits) in &engine.model().witness.logits {
            assert!(plain.logits.get(text) == Some(logits), "{} tokens", text.len());
        }
    }
}

/// Before every step it is asked for steps and drafts larger than it was made for.
struct Pressed {
    witness: Witness,
    options: EngineOptions,
    /// Captures everything again before the next step: what is captured says where it found it.
    recaptures: Cell<bool>,
}

impl Pressed {
    fn refuses_to_grow(&mut self) {
        let geometry = self.geometry().clone();
        let sequences = self.options.sequences;
        // What the model has room for, then what its lists have.
        for tokens in [self.options.step_tokens + 1, self.options.step_tokens * 4] {
            let shape = StepShape { tokens, sequences, outputs: 1, table_pages: 1 };
            let step = StepLists::padding(shape, &geometry);
            assert!(self.witness.step(&step, &[]).is_err(), "{tokens} rows were taken");
        }
        let draft = DraftLists::new(&[], sequences + 1, &[], &geometry);
        assert!(self.witness.draft(&draft, &[]).is_err(), "a larger draft was taken");
    }
}

impl Forward for Pressed {
    fn geometry(&self) -> &Geometry {
        self.witness.geometry()
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        self.refuses_to_grow();
        if self.recaptures.take() {
            self.witness.runner.capture(&self.options)?;
        }
        self.witness.step(lists, samples)
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        self.witness.draft(lists, drafters)
    }
}

/// A device with an engine, and what came of its steps so far.
struct Stage {
    device: Arc<dyn Device>,
    engine: Engine<Pressed>,
    captured: Option<Graphs>,
    events: Vec<Vec<Event>>,
}

impl Stage {
    fn new(captured: Option<Graphs>) -> Self {
        let device: Arc<dyn Device> = Arc::new(RefDevice::new());
        let graphs = captured.unwrap_or_default();
        let options = EngineOptions { graphs, resume_points: 8, ..options(32, 5) };
        let runner = runner(&device, captured, &options);
        let (witness, recaptures) = (Witness::new(runner), Cell::new(false));
        let model = Pressed { witness, options: options.clone(), recaptures };
        Self { engine: Engine::new(model, options).unwrap(), device, captured, events: vec![] }
    }

    fn add(&mut self, prompt_tokens: u64, max_tokens: u64, drafts: bool) -> RequestId {
        let request = engine_support::request(prompt(prompt_tokens, prompt_tokens), max_tokens);
        self.engine.add(Request { drafts, ..request }).unwrap()
    }

    /// Steps after which `running` requests run; the last three as captured if anything is.
    fn steps(&mut self, count: u64, running: usize) {
        let replays = |stage: &Self| stage.engine.model().witness.runner.replays();
        for at in 0..count {
            let before = replays(self);
            self.events.push(self.engine.step().unwrap());
            self.engine.check().unwrap();
            let replayed = replays(self) > before;
            assert!(at + 3 < count || replayed == self.captured.is_some(), "step {at} of {count}");
        }
        assert_eq!(self.engine.running(), running);
    }

    /// Memory that came after the engine's, full of ones; as much was given back in between.
    fn occupy(&self) -> Vec<View> {
        let stream = self.device.stream().unwrap();
        let fill = |kib: u64| {
            let alloc = self.device.allocate(kib << 10, Place::Device, "noise").unwrap();
            let view = View::dense(&alloc, 0, Enc::U8, &[kib << 10]).unwrap();
            stream.fill(&view, 0xff).unwrap();
            view
        };
        let all: Vec<_> = (1..65).map(fill).collect();
        all.into_iter().step_by(2).collect()
    }

    /// A second engine on the same device, from its start to its end.
    fn second_engine(&self) {
        let options = options(64, 0);
        let witness = Witness::new(runner(&self.device, self.captured, &options));
        let mut engine = Engine::new(witness, options).unwrap();
        answers(&mut engine, vec![engine_support::request(vec![7], 3)]);
    }
}

/// The events of every step and all logits, while memory, requests and sizes come and go.
fn turmoil(captured: Option<Graphs>) -> (Vec<Vec<Event>>, Logits) {
    let mut stage = Stage::new(captured);
    let reserved = stage.device.ledger();
    stage.add(5, 200, false);
    let cancelled = stage.add(23, 200, false);
    stage.steps(1 + 3, 2);

    // A request goes, others' memory comes, and a prompt of three chunks is read; then drafts are
    // made and verified.
    let noise = stage.occupy();
    assert!(stage.engine.cancel(cancelled));
    let drafting = stage.add(70, 200, true);
    stage.steps(3 + 3, 2);
    stage.second_engine();
    stage.steps(3, 2);

    // A larger captured size until the newcomer ends, then the smaller one again. It goes on from
    // what the one that drafts has left in the prefix cache.
    stage.add(70, 5, false);
    stage.steps(1 + 3, 3);
    assert_eq!(stage.engine.prefix_counts().hit_tokens, 64);
    drop(noise);
    stage.steps(1 + 3, 2);

    // The graph of the first steps again.
    assert!(stage.engine.cancel(drafting));
    stage.add(6, 200, false);
    stage.steps(1 + 3, 2);
    assert_eq!(stage.device.ledger(), reserved, "the engine's memory has changed");

    stage.engine.model().recaptures.set(captured.is_some());
    stage.steps(3, 2);
    (stage.events, stage.engine.model().witness.logits.clone())
}

/// Whatever happens between the replays of a captured step, it finds its memory where it was, and
/// nothing that it was made for can grow.
#[test]
fn c091_addresses_stay_put() {
    let (plain, plain_logits) = turmoil(None);
    for graphs in [Graphs::Full, Graphs::Segments] {
        let (captured, logits) = turmoil(Some(graphs));
        assert_eq!(captured.len(), plain.len());
        for (step, (captured, plain)) in captured.iter().zip(&plain).enumerate() {
            assert_eq!(captured, plain, "step {step}");
        }
        assert!(logits == plain_logits, "logits differ");
    }
}
