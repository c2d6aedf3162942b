//! Every wrong model runs and says something else than the right one.
#![cfg(feature = "variants")]

mod model_support;

use model_support::{Bench, demo_config, limits};
use tandem_engine::model::v41::{Config, Recipe, Variant};
use tandem_engine::verify::GoldenFile;
use tandem_engine::weights::Files;
use tandem_reference::RefDevice;

#[test]
fn every_variant_changes_the_logits() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens");
    let file = GoldenFile::read(&Files::folder(folder), "text_200.safetensors").unwrap();
    let ids = &file.ids().unwrap().values[..151];
    let rows: Vec<usize> = (0..ids.len()).collect();
    let device = RefDevice::new();
    let logits = |config: &Config, recipe: &Recipe| {
        let bench = Bench::with(&device, (config, recipe), limits(192));
        let batch = bench.batch(ids, &rows, &[150]);
        let outcome =
            bench.model.forward(bench.lane(), &batch, &bench.caches, &bench.scratch).unwrap();
        bench.f32s(&outcome.logits)
    };
    let config = demo_config();
    let right = logits(&config, &Recipe::of(&config));
    for variant in Variant::ALL {
        let (config, recipe) = variant.of(&config);
        let wrong = logits(&config, &recipe);
        assert!(wrong.iter().all(|x| x.is_finite()), "{variant:?}");
        assert_ne!(wrong, right, "{variant:?}");
    }
}
