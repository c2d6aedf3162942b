//! Wrong models must fail verification: each mistake fails at least one gate.
#![cfg(feature = "variants")]

use std::sync::Arc;

use tandem_engine::model::v41::{Config, Recipe, Variant};
use tandem_engine::verify::{Report, Run};
use tandem_engine::weights::Files;
use tandem_hal::num::bf16;
use tandem_hal::{Device, Enc, Op, Slot};
use tandem_reference::{Around, RefDevice, Setup, Tensor};

/// The prompt whose every layer can be fed golden inputs; the others would only add time.
const FILE: &str = "text_200.safetensors";

fn demo() -> (Files, Config) {
    let model = Files::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo"));
    let json = model.read("config.json", 1 << 20).expect("the demo has a configuration");
    let config = Config::from_json(&json).expect("the demo's configuration is sound");
    (model, config)
}

fn report(config: &Config, recipe: &Recipe, setup: &Setup) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/");
    std::fs::copy(format!("{golden}{FILE}"), folder.path().join(FILE)).expect("copied");
    let (model, _) = demo();
    let goldens = Files::folder(folder.path());
    let device: Arc<dyn Device> = Arc::new(RefDevice::with(setup));
    let run = Run { model: &model, goldens: &goldens, device: &device };
    run.report(config, recipe, &mut |_| {}, &mut |_| {}).expect("a wrong model still runs")
}

fn assert_caught(name: &str, report: &Report) {
    println!("{name}: {}", report.verdict());
    assert!(report.failures().next().is_some(), "{name} passes every gate");
}

#[test]
fn the_right_model_passes() {
    let (_, config) = demo();
    let report = report(&config, &Recipe::of(&config), &Setup::default());
    assert!(report.passes(), "{}", report.verdict());
}

#[test]
fn every_wrong_engine_fails_a_gate() {
    let (_, config) = demo();
    for variant in Variant::ALL {
        let (config, recipe) = variant.of(&config);
        assert_caught(&format!("{variant:?}"), &report(&config, &recipe, &Setup::default()));
    }
}

/// A device of primitives with advice around every launch.
fn wrong_device(around: Arc<Around>) -> Setup {
    Setup { primitives_only: true, around: Some(around), ..Setup::default() }
}

#[test]
fn a_router_without_its_bias_fails_a_gate() {
    let around: Arc<Around> = Arc::new(|op, slots, _, _, compute| {
        let Op::Route(route) = op else { return compute(slots) };
        let zeros = vec![0; route.experts as usize * 4];
        let mut again: Vec<_> = std::mem::take(slots);
        let bias = Tensor::dense(Enc::F32, &[route.experts], &zeros, &[]);
        again[1] = Slot::In(bias);
        let result = compute(&mut again);
        result
    });
    let (_, config) = demo();
    let report = report(&config, &Recipe::of(&config), &wrong_device(around));
    assert_caught("no router bias", &report);
}

#[test]
fn index_scores_in_bf16_fail_a_gate() {
    let around: Arc<Around> = Arc::new(|op, slots, _, _, compute| {
        compute(slots)?;
        if let (Op::Scores(_), Some(Slot::Out(scores))) = (op, slots.last_mut()) {
            for row in 0..scores.rows() {
                let values = scores.read().row(row).into_owned();
                let rounded: Vec<f32> = values.iter().map(|v| bf16::round_f32(*v)).collect();
                scores.set_row_f32(row, &rounded);
            }
        }
        Ok(())
    });
    let (_, config) = demo();
    let report = report(&config, &Recipe::of(&config), &wrong_device(around));
    assert_caught("bf16 index scores", &report);
}
