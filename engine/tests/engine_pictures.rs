//! Pictures from files to tokens, on the reference device and on a model without arithmetic.

mod engine_support;
mod model_support;

use engine_support::{Answer, Drafts, FakeModel, answers, finish};
use model_support::{demo, demo_config};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tandem_engine::Result;
use tandem_engine::exec::{
    Batch, DraftBatch, DraftLists, Drafted, Drafter, Engine, EngineOptions, FinishReason, Forward,
    Geometry, Network, PictureGeometry, PromptPicture, Request, Runner, Sample, Sampled, StepLists,
};
use tandem_engine::model::v41::Resident;
use tandem_engine::model::v41::vision_tower::picture_limits;
use tandem_engine::sample::SamplingParameters;
use tandem_engine::verify::GoldenFile;
use tandem_engine::vision::{DecodeLimits, Picture, PictureInput, PictureLimits};
use tandem_engine::weights::Files;
use tandem_hal::num::bf16;
use tandem_hal::{Device, Rule, Stream, View};
use tandem_reference::{RefDevice, Setup};

const GOLDENS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens");
const NAMES: [&str; 3] = ["picture", "picture_odd", "picture_resized"];

fn options() -> EngineOptions {
    EngineOptions {
        sequences: 4,
        step_tokens: 64,
        pages: 32,
        context_tokens: 1024,
        draft_tokens: 0,
        pictures: 2,
        ..engine_support::options()
    }
}

fn engine(options: EngineOptions) -> Engine<Runner<Resident>> {
    let device: Arc<dyn Device> =
        Arc::new(RefDevice::with(&Setup { threads: Some(2), ..Setup::default() }));
    let runner = Runner::new(
        &device,
        demo::resident(device.as_ref(), true, &options),
        &options,
        Rule::Block,
    )
    .unwrap();
    Engine::new(runner, options).unwrap()
}

fn golden(name: &str) -> GoldenFile {
    GoldenFile::read(&Files::folder(GOLDENS), &format!("{name}.safetensors")).unwrap()
}

fn integers(file: &GoldenFile, name: &str) -> Vec<u32> {
    file.integers(name).unwrap().unwrap().values.iter().map(|id| *id as u32).collect()
}

/// The golden prompt with the picture of its file, prepared by ourselves.
fn request(name: &str) -> Request {
    let bytes = std::fs::read(format!("{GOLDENS}/{name}.png")).unwrap();
    let limits = picture_limits(&demo_config()).unwrap();
    let input = PictureInput::from_file(&bytes, &DecodeLimits::default(), &limits).unwrap();
    let types = golden(name).integers("types").unwrap().unwrap().values;
    let start = types.iter().position(|kind| *kind == 0).unwrap() as u64;
    Request {
        prompt: integers(&golden(name), "ids"),
        pictures: vec![PromptPicture { start, input: Arc::new(input) }],
        max_tokens: Some(8),
        sampling: SamplingParameters { log_probs: Some(4), ..Default::default() },
        stop_ids: vec![1],
        ..Request::default()
    }
}

fn text(prompt: &[u32]) -> Request {
    Request { prompt: prompt.to_vec(), pictures: vec![], ..request("picture") }
}

/// Two pictures in one prompt, at places that the golden prompts do not have.
fn joined(first: &Request, second: &Request) -> Request {
    let mut request = first.clone();
    let offset = request.prompt.len() as u64;
    request.prompt.extend(&second.prompt);
    request.pictures.extend(second.pictures.iter().map(|picture| PromptPicture {
        start: offset + picture.start,
        input: Arc::clone(&picture.input),
    }));
    request
}

#[track_caller]
fn assert_equal(one: &Answer, other: &Answer, what: &str) {
    assert_eq!(one.tokens, other.tokens, "{what}");
    assert_eq!(one.log_probs, other.log_probs, "{what}, to the last bit");
}

/// A model whose pictures are the golden ones: their cells are written over the tower's.
struct GoldenRows {
    resident: Resident,
    cells: RefCell<Vec<f32>>,
}

impl Network for GoldenRows {
    fn geometry(&self) -> &Geometry {
        self.resident.geometry()
    }
    fn forward(&self, batch: &Batch, on: &dyn Stream) -> Result<View> {
        self.resident.forward(batch, on)
    }
    fn draft(&self, batch: &DraftBatch, on: &dyn Stream) -> Result<Drafted> {
        self.resident.draft(batch, on)
    }
    fn bias(&self, previous: &View, logits: &View, on: &dyn Stream) -> Result<()> {
        self.resident.bias(previous, logits, on)
    }
    fn confidence(
        &self,
        drafted: &Drafted,
        rows: Range<u64>,
        tokens: (&View, &View),
        on: &dyn Stream,
    ) -> Result<()> {
        self.resident.confidence(drafted, rows, tokens, on)
    }
    fn picture_rows(&self) -> View {
        self.resident.picture_rows()
    }
    fn picture(&self, input: &PictureInput, first_row: u64, on: &dyn Stream) -> Result<()> {
        self.resident.picture(input, first_row, on)?;
        let cells = self.cells.borrow();
        let width = cells.len() / input.span.cells() as usize;
        for position in 0..input.span.tokens() {
            let Some(cell) = input.span.cell(position) else { continue };
            let values = &cells[cell as usize * width..][..width];
            let bytes: Vec<u8> =
                values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect();
            let row = first_row + position;
            on.write(&self.picture_rows().rows(row..row + 1)?, &bytes)?;
        }
        Ok(())
    }
}

/// Steps count up to the first whose two best tokens are closer than this.
const CLEAR: f32 = 0.5;

#[test]
fn a_picture_file_says_what_the_golden_rows_say() {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = options();
    let network = GoldenRows {
        resident: demo::resident(device.as_ref(), true, &options),
        cells: RefCell::default(),
    };
    let runner = Runner::new(&device, network, &options, Rule::Block).unwrap();
    let mut from_rows = Engine::new(runner, options.clone()).unwrap();
    let mut from_file = engine(options);
    for name in NAMES {
        let file = golden(name);
        let network = from_rows.model().network();
        *network.cells.borrow_mut() = file.reals("aligned").unwrap().unwrap().values;
        let expected = answers(&mut from_rows, vec![request(name)]).remove(0);
        let found = answers(&mut from_file, vec![request(name)]).remove(0);
        let greedy = integers(&file, "greedy");
        let margins = file.reals("greedy_margin").unwrap().unwrap().values;
        let clear = margins.iter().take_while(|margin| **margin > CLEAR).count();
        assert!(clear >= 2, "{name}: {margins:?}");
        assert_eq!(found.tokens[..clear], greedy[..clear], "{name}");
        assert_eq!(found.tokens, expected.tokens, "{name}");
        for (one, other) in found.log_probs.iter().zip(&expected.log_probs) {
            let gap = (one.chosen - other.chosen).abs();
            assert!(gap < 0.1, "{name}: {gap} between the tower's rows and the golden ones");
        }
        // A prompt without its picture, or with another, is another prompt.
        let blind = answers(&mut from_file, vec![text(&request(name).prompt)]).remove(0);
        assert_ne!(blind.log_probs, found.log_probs, "{name}");
    }
}

/// Pictures, text, a picture twice, and more pictures than there is room for at once.
fn mixed() -> Vec<Request> {
    let [first, second, third] = NAMES.map(request);
    let many = joined(&joined(&joined(&first, &second), &third), &first);
    vec![
        many,
        text(&[0, 57, 74, 269, 329]),
        first.clone(),
        joined(&second, &second),
        text(&[0, 2033, 5, 6, 7, 8, 9]),
        Request { drafts: true, ..third },
    ]
}

#[test]
fn together_cut_up_and_drafting_each_says_what_it_says_alone() {
    let mut alone = engine(options());
    let alone: Vec<_> =
        mixed().into_iter().map(|one| answers(&mut alone, vec![one]).remove(0)).collect();
    for (pictures, step_tokens, draft_tokens) in [(1, 64, 0), (3, 7, 0), (1, 24, 5)] {
        let options = EngineOptions { pictures, step_tokens, draft_tokens, ..options() };
        let mut engine = engine(options);
        let together = answers(&mut engine, mixed());
        for (at, (one, other)) in alone.iter().zip(&together).enumerate() {
            assert_equal(one, other, &format!("request {at}, room for {pictures}"));
        }
        assert_eq!((engine.free_pages().compressed, engine.free_pictures()), (32, pictures));
    }
}

/// With a prefix cache the second answer to a prompt goes on from the first, also from within a
/// picture, and never from another one's.
#[test]
fn c058_a_hit_behind_pictures() {
    let mut cold = engine(options());
    let mut hot = engine(EngineOptions { resume_points: 8, ..options() });
    let swapped = {
        let mut many = mixed().remove(0);
        let first = Arc::clone(&many.pictures[0].input);
        let other = Picture::new(84, 84, vec![99; 3 * 84 * 84]).unwrap();
        let other = PictureInput::from_picture(&other, &picture_limits(&demo_config()).unwrap());
        many.pictures[0].input = Arc::new(other.unwrap());
        (many.pictures[0].input.span.tokens() == first.span.tokens()).then_some(many)
    };
    let mut cached = 0;
    for (at, request) in mixed().into_iter().chain(swapped).enumerate() {
        let expected = answers(&mut cold, vec![request.clone()]).remove(0);
        for turn in 0..2 {
            let answer = answers(&mut hot, vec![request.clone()]).remove(0);
            assert_equal(&expected, &answer, &format!("request {at}, turn {turn}"));
            cached += answer.cached_tokens;
        }
    }
    println!("{cached} tokens of prompts were cached");
    assert!(cached > 0);
    assert_eq!((hot.free_pages().compressed, hot.free_pictures()), (32, 2));
}

#[test]
fn pictures_that_cannot_be_read_are_refused_and_others_go_on() {
    let mut engine = engine(options());
    let running = engine.add(request("picture")).unwrap();
    engine.step().unwrap();
    let refused = |engine: &mut Engine<Runner<Resident>>, request: Request| {
        let error = engine.add(request).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().lines().count()), (2, 1), "{error}");
        error.to_string()
    };
    let good = request("picture");
    let mut moved = good.clone();
    moved.pictures[0].start += 1;
    assert!(refused(&mut engine, moved).contains("place the pictures anew"));
    let mut cut = good.clone();
    cut.prompt.truncate(5);
    assert!(refused(&mut engine, cut).contains("place the pictures anew"));
    let twice =
        Request { pictures: [good.pictures.clone(), good.pictures.clone()].concat(), ..good };
    assert!(refused(&mut engine, twice).contains("out of order"));
    // Prepared for the release: patches of the same size, but a span beyond this model's.
    let limits =
        PictureLimits { max_image_tokens: 1024, ..picture_limits(&demo_config()).unwrap() };
    let large = Picture::new(900, 900, vec![9; 3 * 900 * 900]).unwrap();
    let input = Arc::new(PictureInput::from_picture(&large, &limits).unwrap());
    let prompt = vec![2038; input.span.tokens() as usize + 1];
    let pictures = vec![PromptPicture { start: 0, input }];
    let error = refused(&mut engine, Request { prompt, pictures, ..request("picture") });
    assert!(error.contains("does not read"), "{error}");
    let events = finish(&mut engine);
    assert_eq!(events[&running].finish, Some(FinishReason::Stop(1)));
}

#[test]
fn without_a_tower_pictures_are_refused() {
    let mut text_only =
        Engine::new(FakeModel::new(Drafts::Right), engine_support::options()).unwrap();
    let blind = Request { prompt: vec![5; 20], ..request("picture") };
    let error = text_only.add(blind).unwrap_err().to_string();
    assert!(error.contains("send text alone"), "{error}");
}

/// A model without arithmetic that checks which picture row stands for which row.
struct Seeing {
    model: FakeModel,
    /// Spans by the first of their rows.
    read: HashMap<u64, u64>,
    /// Fails to read the picture of this number.
    fails_at: Option<usize>,
    pictures: usize,
}

impl Forward for Seeing {
    fn geometry(&self) -> &Geometry {
        self.model.geometry()
    }
    fn picture(&mut self, input: &PictureInput, first_row: u64) -> Result<()> {
        self.pictures += 1;
        if self.fails_at == Some(self.pictures) {
            let invariant = "a fault of the test's tower".into();
            return Err(tandem_engine::Error::Internal { invariant });
        }
        self.read.insert(first_row, input.span.tokens());
        Ok(())
    }
    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        for (row, picture) in lists.rows.picture.iter().enumerate() {
            let cell = lists.cells.get(row).copied().unwrap_or(-1);
            assert_eq!(cell >= 0, *picture == 1, "row {row}");
            assert!(cell < 0 || lists.rows.id[row] == TOKEN as i32);
            let held =
                |(first, span): (&u64, &u64)| (*first..first + span).contains(&(cell as u64));
            assert!(cell < 0 || self.read.iter().any(held), "row {row} shows cell {cell}");
        }
        self.model.step(lists, samples)
    }
    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        self.model.draft(lists, drafters)
    }
}

const TOKEN: u32 = 90;

/// Pictures of four tokens each among text of 20.
fn sketch(pictures: u64, salt: u32) -> Request {
    let limits = PictureLimits {
        patch: 1,
        downsample: 1,
        max_image_tokens: 8,
        min_pixels: 0,
        max_wh_ratio: None,
    };
    let picture = Picture::new(1, 1, vec![0; 3]).unwrap();
    let input = Arc::new(PictureInput::from_picture(&picture, &limits).unwrap());
    let mut request = Request { max_tokens: Some(90), drafts: true, ..Request::default() };
    for _ in 0..pictures {
        request.prompt.extend((0..20).map(|at| (at + salt) % 80 + 2));
        let start = request.prompt.len() as u64;
        request.prompt.extend([TOKEN; 4]);
        request.pictures.push(PromptPicture { start, input: Arc::clone(&input) });
    }
    request
}

fn seeing(pages: u64, fails_at: Option<usize>) -> Engine<Seeing> {
    let mut model = FakeModel::new(Drafts::Mixed);
    let pictures = PictureGeometry { token: TOKEN, tokens: 8, patch_values: 3, cell_side: 1 };
    model.geometry.pictures = Some(pictures);
    let seeing = Seeing { model, read: HashMap::new(), fails_at, pictures: 0 };
    let options = EngineOptions {
        pages,
        sequences: 4,
        pictures: 2,
        step_tokens: 40,
        ..engine_support::options()
    };
    Engine::new(seeing, options).unwrap()
}

#[test]
fn room_comes_back_from_whoever_ends_or_is_set_back() {
    // Eight pages do not hold four sequences to their ends.
    let mut engine = seeing(8, None);
    let ids: Vec<_> = (0..4).map(|at| engine.add(sketch(5, at)).unwrap()).collect();
    let mut ended = 0;
    for step in 0.. {
        if step == 2 {
            assert!(engine.cancel(ids[1]));
        }
        let events = engine.step().unwrap();
        engine.check().unwrap();
        ended += events
            .iter()
            .filter(|event| matches!(event.what, tandem_engine::exec::What::Finished { .. }))
            .count();
        if engine.is_idle() {
            break;
        }
        assert!(step < 10_000, "it never ends");
    }
    assert_eq!((ended, engine.free_pictures(), engine.free_pages().compressed), (4, 2, 8));
    assert!(engine.work().restarts > 0, "nobody was set back");
}

#[test]
fn a_tower_that_fails_loses_no_request_and_no_room() {
    let mut engine = seeing(32, Some(2));
    let request = sketch(3, 0);
    let greedy = engine.model().model.answer(
        &request.prompt,
        90,
        true,
        tandem_engine::sample::Draws::unseeded(1, 0),
    );
    let id = engine.add(request).unwrap();
    let mut failures = 0;
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        match engine.step() {
            Ok(events) => tokens.extend(events.into_iter().filter_map(|event| match event.what {
                tandem_engine::exec::What::Token { id, .. } => Some(id),
                _ => None,
            })),
            Err(_) => failures += 1,
        }
        engine.check().unwrap();
    }
    assert_eq!((failures, tokens), (1, greedy), "{id:?}");
    assert_eq!(engine.free_pictures(), 2);
}
