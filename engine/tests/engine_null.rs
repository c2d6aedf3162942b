//! The whole engine on the accounting device: every launch, captured or not, passes the operand
//! checks, and nothing is reserved once it is ready.

mod engine_support;
mod model_support;

use engine_support::{finish, options, prompt, request};
use model_support::{demo, demo_config, null};
use std::sync::Arc;
use tandem_engine::exec::{
    Engine, EngineOptions, FinishReason, Geometry, PromptPicture, Request, Runner,
};
use tandem_engine::model::v41::Resident;
use tandem_engine::model::v41::vision_tower::picture_limits;
use tandem_engine::plan::{Boards, Request as PlanRequest, plan};
use tandem_engine::sample::SamplingParameters;
use tandem_engine::vision::{Picture, PictureInput};
use tandem_hal::{Device, Rule};

fn engine(
    device: &Arc<dyn Device>,
    (draft, rule): (bool, Rule),
    options: EngineOptions,
) -> Engine<Runner<Resident>> {
    let resident = demo::resident(device.as_ref(), draft, &options);
    let mut runner = Runner::new(device, resident, &options, rule).unwrap();
    runner.capture(&options).unwrap();
    Engine::new(runner, options).unwrap()
}

#[test]
fn every_kind_of_step_passes_the_operand_checks() {
    for rule in [Rule::Standard, Rule::Block] {
        let device: Arc<dyn Device> = Arc::new(null());
        let options = EngineOptions {
            step_tokens: 300,
            chunk_tokens: 170,
            step_sizes: vec![2, 8],
            pictures: 1,
            ..options()
        };
        let mut engine = engine(&device, (true, rule), options);
        let ready: Vec<_> = device.ledger();
        let picture = Picture::new(98, 84, vec![0; 3 * 98 * 84]).unwrap();
        let input = PictureInput::from_picture(&picture, &picture_limits(&demo_config()).unwrap());
        let sampled = SamplingParameters {
            temperature: 0.8,
            top_k: 40,
            presence_penalty: 0.5,
            logit_bias: vec![(3, 1.0)],
            log_probs: Some(3),
            ..Default::default()
        };
        let picture = PromptPicture { start: 165, input: Arc::new(input.unwrap()) };
        let mut with_picture = request(prompt(2, 200), 20);
        with_picture.prompt[165..165 + picture.input.span.tokens() as usize].fill(2038);
        with_picture.pictures.push(picture);
        let requests = vec![
            // Long enough to skip the upper half of its first tokens.
            request(prompt(0, 900), 20),
            Request { sampling: sampled, ..request(prompt(1, 40), 20) },
            with_picture,
            Request { drafts: false, ..request(prompt(3, 1), 20) },
        ];
        for request in requests {
            engine.add(request).unwrap();
        }
        for answer in finish(&mut engine).into_values() {
            // Reads give zeros on this device.
            assert_eq!(answer.tokens, [0; 20]);
            assert_eq!(answer.finish, Some(FinishReason::Length));
        }
        assert_eq!(device.ledger().len(), ready.len(), "something was reserved");
        assert_eq!(engine.free_pictures(), 1);
        assert!(engine.work().drafted_tokens > 0);
        assert!(engine.work().layer_rows < engine.work().rows * 9);
    }
}

#[test]
fn picture_rows_are_planned_as_they_are_reserved() {
    let config = demo_config();
    let planned = |pictures| {
        let mut request = PlanRequest::new(Boards::parse("nvidia-h200").unwrap());
        request.pictures = pictures;
        let items = plan(&config, &request).unwrap().workspace;
        items.iter().find(|item| item.label == "picture rows").map(|item| item.bytes)
    };
    for pictures in [1, 3] {
        let device: Arc<dyn Device> = Arc::new(null());
        let options = EngineOptions { pictures, draft_tokens: 0, ..options() };
        let _resident = demo::resident(device.as_ref(), false, &options);
        let ledger = device.ledger();
        let rows = ledger.iter().find(|line| line.purpose == "picture rows").unwrap();
        assert_eq!(planned(Some(pictures)), Some(rows.bytes));
    }
    assert_eq!(planned(Some(0)), None);
    assert_eq!(planned(None), planned(Some(2)));
}

#[test]
fn a_model_without_its_stages_does_not_draft() {
    let device: Arc<dyn Device> = Arc::new(null());
    let options = EngineOptions { draft_tokens: 0, ..options() };
    let mut engine = engine(&device, (false, Rule::Standard), options);
    engine.add(request(prompt(0, 20), 5)).unwrap();
    assert_eq!(finish(&mut engine).len(), 1);
    assert_eq!(engine.work().drafts, 0);
}

/// A size that buffers are not made for is refused at the start; the largest that they are made for
/// runs, captured, with all its drafts.
#[test]
fn c041_buffers_cover_every_step_and_captured_size() {
    let device: Arc<dyn Device> = Arc::new(null());
    // Four requests with five drafts each are 24 rows.
    let right =
        EngineOptions { sequences: 4, step_tokens: 24, step_sizes: vec![1, 4], ..options() };
    let geometry = Geometry::of(&demo_config());
    for (wrong, expected) in [
        (
            EngineOptions { step_tokens: 8, ..right.clone() },
            "step tokens: 8 a step for 4 sequences; at least 24, and 1",
        ),
        (
            EngineOptions { step_sizes: vec![1, 16], ..right.clone() },
            "step sizes: [1, 16]; they ascend from 1 to 4",
        ),
    ] {
        assert_eq!(wrong.check(&geometry).unwrap_err().to_string(), expected);
    }
    let mut engine = engine(&device, (true, Rule::Standard), right);
    for number in 0..4 {
        engine.add(request(prompt(number, 20), 20)).unwrap();
    }
    assert_eq!(finish(&mut engine).len(), 4);
    assert!(engine.model().replays() > 0);
    assert!(engine.work().drafted_tokens > 0);
}
