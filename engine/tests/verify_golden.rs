//! The demo checkpoint on the reference device against every golden file, all gates.

use std::sync::Arc;

use tandem_engine::model::v41::{Config, Recipe};
use tandem_engine::verify::Run;
use tandem_engine::weights::Files;
use tandem_hal::Device;
use tandem_reference::RefDevice;

#[test]
fn every_gate_holds_on_the_reference() {
    let model = Files::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo"));
    let goldens = Files::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens"));
    let device: Arc<dyn Device> = Arc::new(RefDevice::new());
    let json = model.read("config.json", 1 << 20).expect("the demo has a configuration");
    let config = Config::from_json(&json).expect("the demo's configuration is sound");
    let run = Run { model: &model, goldens: &goldens, device: &device };
    let recipe = Recipe::of(&config);
    let report = run.report(&config, &recipe, &mut |_| {}, &mut |_| {});
    let report = report.expect("the golden files are sound");
    println!("{report}");
    assert!(report.passes(), "{}", report.verdict());
    let judged = |what: &str| report.figures.iter().any(|f| f.what.starts_with(what));
    for gate in ["window_kv", "draft hidden", "vision features", "log-prob gap", "held_out"] {
        assert!(judged(gate), "{gate} was compared");
    }
}
