//! Wrong models must fail verification: each mistake fails at least one gate, and departs about as
//! far as it did in the implementation that the gates were set with.
#![cfg(feature = "variants")]

mod wrong_devices;

use std::sync::Arc;

use tandem_engine::model::v41::{Config, Recipe, Variant};
use tandem_engine::verify::{Report, Run};
use tandem_engine::weights::Files;
use tandem_hal::{Device, Enc};
use tandem_reference::{Around, RefDevice, Setup};

/// The prompt whose every layer can be fed golden inputs; the others would only add time.
const FILE: &str = "text_200.safetensors";

/// The worst layer's figures under teacher forcing.
#[derive(Debug, Clone, Copy)]
struct Departure {
    /// Shares of window values unequal, of compressed entries or index keys unequal, and of index
    /// rows equal.
    caches: [f64; 3],
    /// Share of expert sets equal, then median and 99th percentile of the next streams' relative
    /// distance. `None` for mistakes in what a layer selects from: here its output follows from its
    /// own entries and rows, in the published figures from golden ones.
    output: Option<[f64; 3]>,
}

impl Departure {
    const fn of(caches: [f64; 3], output: [f64; 3]) -> Departure {
        Departure { caches, output: Some(output) }
    }

    const fn of_selection(caches: [f64; 3]) -> Departure {
        Departure { caches, output: None }
    }

    fn measured(report: &Report) -> Departure {
        let figures = |what: &'static str| {
            let forced = report.figures.iter().filter(move |figure| figure.what == what);
            forced.map(|figure| figure.measured)
        };
        let most = |what| figures(what).fold(0.0, f64::max);
        let least = |what| figures(what).fold(1.0, f64::min);
        Departure::of(
            [
                most("window_kv unequal"),
                most("compressed_kv unequal").max(most("index_keys unequal")),
                least("index rows equal"),
            ],
            [
                least("expert sets equal"),
                most("next streams, median rel-L2"),
                most("next streams, p99 rel-L2"),
            ],
        )
    }

    /// Sums in another order move single codes, entries and experts, so shares are compared to a
    /// few hundredths, and distances beyond their gates to a factor of two.
    fn is_like(&self, published: &Departure) -> bool {
        let share = |(a, b): (&f64, &f64)| (a - b).abs() < 0.06;
        let distance = |a: f64, b: f64, gate: f64| match b > gate {
            true => a > gate && a > b / 2.0 && a < b * 2.0,
            false => a <= gate,
        };
        let output = |(a, b): ([f64; 3], [f64; 3])| {
            share((&a[0], &b[0])) && distance(a[1], b[1], 1e-3) && distance(a[2], b[2], 2.5e-2)
        };
        self.caches.iter().zip(&published.caches).all(share)
            && self.output.zip(published.output).is_none_or(output)
    }
}

/// Who makes a mistake.
enum Mistake {
    /// The engine.
    Engine(Variant),
    /// The device.
    Device(fn() -> Arc<Around>),
    /// Both: one kept rounding would hide the other.
    Both(Variant, fn() -> Arc<Around>),
}

use Mistake::{Both, Device as OfDevice, Engine};

/// Every mistake with the departure published for it.
const MISTAKES: [(&str, Mistake, Departure); 15] = [
    (
        "no activation quantisation",
        OfDevice(|| wrong_devices::no_cast(Enc::Q8)),
        Departure::of([0.38, 0.0, 0.35], [0.955, 3e-2, 8e-2]),
    ),
    (
        "no FP8 window",
        Engine(Variant::PlainWindow),
        Departure::of([0.94, 0.0, 1.0], [0.945, 3e-2, 0.15]),
    ),
    ("no NVFP4", Engine(Variant::PlainLatents), Departure::of_selection([0.0, 0.99, 1.0])),
    (
        "no MXFP4 index",
        Both(Variant::PlainKeys, || wrong_devices::no_cast(Enc::MXFP4)),
        Departure::of_selection([0.0, 0.99, 0.35]),
    ),
    (
        "mix not delayed",
        Engine(Variant::EagerMix),
        Departure::of([0.89, 0.90, 0.33], [0.26, 0.31, 1.2]),
    ),
    (
        "no n-gram memory",
        Engine(Variant::NoEngram),
        Departure::of([0.80, 0.75, 0.66], [0.51, 0.15, 0.91]),
    ),
    ("no sink", Engine(Variant::NoSink), Departure::of([0.0, 0.0, 1.0], [0.975, 1.5e-2, 0.24])),
    ("window 129", Engine(Variant::WideWindow), Departure::of([0.0, 0.0, 1.0], [0.990, 0.0, 5e-2])),
    (
        "routing weight after the down projection",
        OfDevice(wrong_devices::late_routing_weight),
        Departure::of([0.0, 0.0, 1.0], [1.0, 8e-3, 3e-2]),
    ),
    (
        "base 150000",
        Engine(Variant::OtherBase),
        Departure::of([0.03, 0.05, 0.36], [0.965, 2e-2, 8e-2]),
    ),
    ("no YaRN", Engine(Variant::NoYarn), Departure::of([0.05, 0.09, 0.35], [0.885, 4e-2, 0.12])),
    ("no candidates", Engine(Variant::NoCandidates), Departure::of_selection([0.0, 0.0, 0.64])),
    (
        "fp32 probabilities",
        OfDevice(wrong_devices::fp32_probabilities),
        Departure::of([0.0, 0.0, 1.0], [0.990, 6e-3, 3e-2]),
    ),
    (
        "bf16 index scores",
        OfDevice(wrong_devices::bf16_scores),
        Departure::of_selection([0.0, 0.0, 0.95]),
    ),
    (
        "no router bias",
        OfDevice(wrong_devices::no_router_bias),
        Departure::of([0.0, 0.0, 1.0], [0.04, 0.15, 0.69]),
    ),
];

fn demo() -> (Files, Config) {
    let model = Files::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/cli/demo"));
    let json = model.read("config.json", 1 << 20).expect("the demo has a configuration");
    let config = Config::from_json(&json).expect("the demo's configuration is sound");
    (model, config)
}

fn report((config, recipe): &(Config, Recipe), setup: &Setup) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/");
    std::fs::copy(format!("{golden}{FILE}"), folder.path().join(FILE)).expect("copied");
    let (model, _) = demo();
    let goldens = Files::folder(folder.path());
    let device: Arc<dyn Device> = Arc::new(RefDevice::with(setup));
    let run = Run { model: &model, goldens: &goldens, device: &device };
    run.report(config, recipe, &mut |_| {}, &mut |_| {}).expect("a wrong model still runs")
}

fn right(config: &Config) -> (Config, Recipe) {
    (config.clone(), Recipe::of(config))
}

#[test]
fn the_right_model_passes() {
    let report = report(&right(&demo().1), &Setup::default());
    assert!(report.passes(), "{}", report.verdict());
}

#[test]
fn every_variant_is_in_the_table() {
    let listed = |variant: &Variant| {
        let engine = |mistake: &Mistake| match mistake {
            Engine(of) | Both(of, _) => of == variant,
            OfDevice(_) => false,
        };
        MISTAKES.iter().any(|(_, mistake, _)| engine(mistake))
    };
    let missing: Vec<_> = Variant::ALL.iter().filter(|variant| !listed(variant)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_mistake_fails_a_gate_and_departs_as_published() {
    let (_, config) = demo();
    for (name, mistake, published) in MISTAKES {
        let report = match mistake {
            Engine(variant) => report(&variant.of(&config), &Setup::default()),
            OfDevice(around) => report(&right(&config), &wrong_devices::device(around())),
            Both(variant, around) => report(&variant.of(&config), &wrong_devices::device(around())),
        };
        println!("{name}: {}", report.verdict());
        assert!(report.failures().next().is_some(), "{name} passes every gate");
        let measured = Departure::measured(&report);
        println!("    {measured:?}");
        assert!(measured.is_like(&published), "{name}: {measured:?}, published {published:?}");
    }
}
