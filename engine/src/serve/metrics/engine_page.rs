//! What the engine counts by itself, as metrics.

use std::fmt::Error;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::serve::generator::{Counts, Load, PageCounts};

/// The engine's last word on what it does and did.
#[derive(Clone, Debug, Default)]
pub(in crate::serve) struct EnginePage(Arc<Mutex<(Load, Counts)>>);

impl EnginePage {
    /// What was published last.
    pub(in crate::serve) fn last(&self) -> (Load, Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes.
    pub(in crate::serve) fn publish(&self, load: Load, counts: Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (load, counts);
    }
}

impl Collector for EnginePage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (load, counts) = self.last();
        let (work, prefix) = (&counts.work, &counts.prefix);
        let mut page = Page(&mut encoder);
        page.gauge("v41_requests_running", "Replies that generate", load.running)?;
        page.gauge("v41_requests_waiting", "Replies that wait for their turn", load.waiting)?;
        let help = "Tokens of prompts that the prefix cache was asked for";
        page.counter("v41_prefix_lookup_tokens", help, prefix.lookup_tokens)?;
        let help = "Tokens of these that it held";
        page.counter("v41_prefix_hit_tokens", help, prefix.hit_tokens)?;
        let help = "What the prefix cache gave up for others";
        let evicted =
            [("page", prefix.evicted_pages), ("resume_point", prefix.evicted_resume_points)];
        page.counters("v41_evictions", help, "kind", evicted)?;
        page.counter("v41_spec_drafted", "Drafts that were verified", work.drafted_tokens)?;
        let positions = (1..).zip(work.accepted_at).take(counts.draft_tokens as usize);
        let positions = positions.map(|(position, accepted): (u64, u64)| (position, accepted));
        let help = "Drafts that stood, by their place";
        page.counters("v41_spec_accepted", help, "position", positions)?;
        page.counter("v41_graph_replays", "Steps and drafts run as captured", counts.replays)?;
        page.counter("v41_nan_rows", "Replies that failed for want of numbers", work.nan_rows)?;
        page.pages(&counts.pages)
    }
}

/// Metrics being written.
struct Page<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Page<'_, '_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    fn counters<V: EncodeLabelValue>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (V, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            ConstCounter::new(value).encode(metric.encode_family(&[(label, of)])?)?;
        }
        Ok(())
    }

    fn pages(&mut self, pages: &[PageCounts; 3]) -> Result<(), Error> {
        let kinds = || ["compressed", "window", "open"].into_iter().zip(pages);
        let help = "Pages of the caches: used, held by the prefix cache alone, or free";
        let mut metric =
            self.0.encode_descriptor("v41_cache_pages", help, None, MetricType::Gauge)?;
        for (kind, pages) in kinds() {
            for (state, count) in
                [("used", pages.used()), ("cached", pages.cached), ("free", pages.free)]
            {
                let labels = [("kind", kind), ("state", state)];
                ConstGauge::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Share of the pages that is used";
        let mut metric =
            self.0.encode_descriptor("v41_cache_usage_ratio", help, None, MetricType::Gauge)?;
        for (kind, pages) in kinds() {
            let share = pages.used() as f64 / pages.total.max(1) as f64;
            ConstGauge::new(share).encode(metric.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }
}
