//! Every operator on its card's production shapes, every accepting row.
//!
//! `TANDEM_BENCH_DEVICE` names the provider (`reference` by default). A filter picks cases:
//! `cargo bench -p tandem-benches -- gemm.mxfp8`. For figures of a GPU see the program `board`.

use criterion::{Criterion, Throughput};
use std::time::Duration;
use tandem_benches::{Budget, Rotation, Subject, accepting_rows, open};
use tandem_hal::{Facts, Line, STEPS, for_each_operator};
use tandem_reference::Card;

fn bench<D: Card>(criterion: &mut Criterion, provider: &str) {
    let mut skipped = 0;
    for (descriptor, extents) in D::bench_shapes() {
        let case = format!("{} {}", descriptor.line(), extents.line());
        let cost = descriptor.cost(&extents);
        if Budget::of(provider).refusal(&cost, &Facts::of(&descriptor), &extents).is_some() {
            skipped += 1;
            continue;
        }
        let rows = accepting_rows(provider, &descriptor, &extents);
        for row in rows.expect("the bench device opens") {
            let forced = (row != STEPS).then_some(row);
            let device = open(provider, D::ID, forced).expect("the bench device opens");
            let subject = Subject::new(&device, &descriptor, &extents, row, &Rotation::NONE);
            let subject = match subject {
                Ok(subject) => subject,
                Err(error) => {
                    println!("SKIPPED {}{case} {row}: {error}", D::ID);
                    continue;
                }
            };
            let mut group = criterion.benchmark_group(D::ID);
            group.throughput(Throughput::Bytes(cost.read_bytes + cost.written_bytes));
            group.sample_size(10).measurement_time(Duration::from_millis(500));
            group.warm_up_time(Duration::from_millis(100));
            group.bench_function(format!("{case} {row}"), |bencher| {
                bencher.iter_custom(|n| subject.time(n).expect("planned launches run"));
            });
            group.finish();
        }
    }
    if skipped > 0 {
        println!("SKIPPED {skipped} shapes of {}: more work than {provider} is asked for", D::ID);
    }
}

macro_rules! bench_all {
    ([$criterion:ident $provider:ident] $($operator:ident)*) => {
        $(bench::<tandem_hal::$operator>(&mut $criterion, &$provider);)*
    };
}

fn main() {
    let provider = std::env::var("TANDEM_BENCH_DEVICE").unwrap_or_else(|_| "reference".into());
    let mut criterion = Criterion::default().configure_from_args();
    for_each_operator!([bench_all], criterion, provider);
    criterion.final_summary();
}
