//! What a form costs beside the model.

mod engine_support;
mod model_support;

use engine_support::collect;
use model_support::{DEMO, demo, demo_config};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tandem_engine::exec::{Engine, EngineOptions, Request, Runner};
use tandem_engine::grammar::{Form, Grammars, ReplyForm};
use tandem_engine::text::Tokenizer;
use tandem_hal::{Device, Rule};
use tandem_reference::RefDevice;

fn median(mut times_us: Vec<f64>) -> f64 {
    times_us.sort_by(f64::total_cmp);
    times_us[times_us.len() / 2]
}

fn time_us(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}

/// A step of one request on the CPU, and the mask for it.
#[test]
fn a_mask_costs_at_most_a_twentieth_of_a_decode_step() {
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let options = EngineOptions {
        sequences: 1,
        step_tokens: 64,
        pages: 32,
        context_tokens: 1024,
        draft_tokens: 0,
        ..engine_support::options()
    };
    let resident = demo::resident(device.as_ref(), true, &options);
    let runner = Runner::new(&device, resident, &options, Rule::Block).unwrap();
    let mut engine = Engine::new(runner, options).unwrap();
    let tokenizer = Tokenizer::from_file(format!("{DEMO}/tokenizer.json")).unwrap();
    let grammars = Grammars::new(&tokenizer, demo_config().vocab_size as u32).unwrap();
    let form = Form::JsonSchema(serde_json::json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 40, "maxLength": 60 },
            "legs": { "type": "integer", "minimum": 0, "maximum": 99 },
            "kind": { "enum": ["whale", "squid", "ship"] },
        },
        "required": ["name", "legs", "kind"],
        "additionalProperties": false,
    }));
    let form = grammars.compile(ReplyForm { answer: Some(&form), ..ReplyForm::default() }).unwrap();
    let prompt = [vec![0], tokenizer.encode("Call me").unwrap()].concat();
    let request = Request {
        prompt,
        form: Some(form.clone()),
        stop_ids: vec![demo_config().eos_token_id],
        max_tokens: Some(300),
        ..Request::default()
    };
    let id = engine.add(request).unwrap();
    let (mut steps_us, mut answers) = (Vec::new(), HashMap::new());
    while !engine.is_idle() {
        steps_us.push(time_us(|| collect(&mut answers, engine.step().unwrap())));
    }
    let mut constraint = form.start();
    let mut masks_us = Vec::new();
    for token in &answers[&id].tokens {
        let mut masks = Vec::new();
        masks_us.push(time_us(|| constraint.masks(&[], &mut masks).unwrap()));
        constraint.accept(*token).unwrap();
    }
    assert!(masks_us.len() > 20, "{} tokens", masks_us.len());
    let (mask_us, step_us) = (median(masks_us), median(steps_us));
    println!("mask {mask_us:.0} us, step {step_us:.0} us");
    assert!(mask_us <= 0.05 * step_us, "{mask_us:.0} us of {step_us:.0} us");
}
