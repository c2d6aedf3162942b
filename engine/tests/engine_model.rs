//! The demo model under the sequence engine's lists: logits and caches do not depend on chunks,
//! batches, padding, drafts, threads, or on what the upper half skips.

mod model_support;

use model_support::demo::{self, Recorder};
use model_support::live::{CacheBytes, Live};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tandem_engine::exec::{
    Chunk, DraftSource, EngineOptions, Forward, Geometry, Graphs, Network, Replay, Runner,
    StepLists, StepShape,
};
use tandem_engine::kv::{PagePools, SequencePages};
use tandem_hal::{Device, Rule};
use tandem_reference::{RefDevice, Setup};

/// A model with pools, without a scheduler.
struct Machine {
    runner: Runner<Recorder>,
    geometry: Geometry,
    pools: PagePools,
}

/// A text of which some positions are computed.
struct Text {
    ids: Vec<u32>,
    pages: SequencePages,
    upper_from: u64,
}

/// The next rows of a text: settled ones, then drafts, of which `kept` rows in all stay.
struct Part<'a> {
    settled: u64,
    drafts: &'a [u32],
    kept: u64,
}

const OUTPUTS: u64 = 40 * 6;

impl Machine {
    fn new(threads: usize) -> Machine {
        let setup = Setup { threads: Some(threads), ..Setup::default() };
        let device: Arc<dyn Device> = Arc::new(RefDevice::with(&setup));
        let options = EngineOptions {
            sequences: 40,
            step_tokens: OUTPUTS,
            chunk_tokens: OUTPUTS,
            step_us: None,
            resume_points: 0,
            replay: Replay::Exact,
            pages: 128,
            context_tokens: 4096,
            draft_tokens: 5,
            drafts: DraftSource::Dspark,
            least_survival: 0.0,
            skip_upper_half: true,
            step_sizes: Vec::new(),
            pictures: 0,
            graphs: Graphs::Full,
            biases: 0,
            seed: 0,
        };
        let resident = demo::resident(device.as_ref(), true, &options);
        let geometry = resident.geometry().clone();
        let pools = PagePools::new(options.pool_pages(&geometry));
        let runner =
            Runner::new(&device, Recorder::new(resident), &options, Rule::Standard).unwrap();
        Machine { runner, geometry, pools }
    }

    fn text(&self, ids: &[u32], upper_from: u64) -> Text {
        let pages = SequencePages::new(&self.pools, self.geometry.window_tokens);
        Text { ids: ids.to_vec(), pages, upper_from }
    }

    /// Runs parts of texts as one step, padded to `pad` rows: the logits of every row that has any,
    /// by text and position.
    fn step(
        &mut self,
        texts: &mut [Text],
        parts: &[(usize, Part<'_>)],
        pad: u64,
    ) -> HashMap<(usize, u64), Vec<u8>> {
        let mut open = Vec::new();
        for (at, part) in parts {
            let rows = part.settled + part.drafts.len() as u64;
            open.push(texts[*at].pages.begin(rows).unwrap());
        }
        let mut chunks = Vec::new();
        for (at, part) in parts {
            let text = &texts[*at];
            let start = text.pages.tokens();
            let known = &text.ids[..(start + part.settled) as usize];
            chunks.push(Chunk {
                pages: &text.pages,
                known,
                drafts: part.drafts,
                start,
                end: known.len() as u64 + part.drafts.len() as u64,
                upper_from: text.upper_from,
                pictures: &[],
                window_tokens: self.geometry.window_tokens,
                history_tokens: self.geometry.history_tokens,
            });
        }
        let mut lists = StepLists::new(&chunks);
        let wanted: Vec<i32> = match &lists.upper {
            Some(upper) => upper.at.clone(),
            None => (0..lists.rows.tokens() as i32).collect(),
        };
        let names: Vec<(usize, u64)> = wanted
            .iter()
            .map(|row| {
                let sequence = lists.rows.sequence[*row as usize] as usize;
                (parts[sequence].0, lists.rows.position[*row as usize] as u64)
            })
            .collect();
        lists.want(wanted);
        lists.pad(StepShape { tokens: pad, sequences: 0, outputs: 0, table_pages: 0 });
        self.runner.step(&lists, &[]).unwrap();
        for ((at, part), step) in parts.iter().zip(open) {
            texts[*at].pages.commit(step, part.kept);
        }
        let logits = self.runner.stream().read(&self.runner.network().last()).unwrap();
        names
            .into_iter()
            .zip(logits.chunks(self.geometry.vocab as usize * 4).map(<[u8]>::to_vec))
            .collect()
    }

    /// The bytes of every live entry.
    fn live(&self, text: &Text) -> Live {
        let caches = CacheBytes::read(&self.runner.network().resident, self.runner.stream());
        caches.live(&text.pages.snapshot())
    }
}

fn ids(seed: u64, tokens: u64) -> Vec<u32> {
    let mix = |at: u64| (at + 1).wrapping_mul(seed * 2 + 0x9E37_79B9_7F4A_7C15) >> 40;
    (0..tokens).map(|at| (mix(at) % 2000) as u32 + 3).collect()
}

/// Logits of each position of two texts, computed from the start in large chunks.
fn expected() -> &'static [HashMap<u64, Vec<u8>>; 2] {
    static EXPECTED: OnceLock<[HashMap<u64, Vec<u8>>; 2]> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let mut machine = Machine::new(2);
        [0, 1].map(|seed| {
            let mut texts = [machine.text(&ids(seed, 330), 0)];
            let mut all = HashMap::new();
            while texts[0].pages.tokens() < 330 {
                let settled = (330 - texts[0].pages.tokens()).min(OUTPUTS);
                let part = Part { settled, drafts: &[], kept: settled };
                let logits = machine.step(&mut texts, &[(0, part)], 0);
                all.extend(logits.into_iter().map(|((_, at), logits)| (at, logits)));
            }
            all
        })
    })
}

fn check(logits: HashMap<(usize, u64), Vec<u8>>, settled: [u64; 2]) {
    for ((text, at), logits) in logits {
        if at < settled[text] {
            assert!(logits == expected()[text][&at], "text {text}, position {at}");
        }
    }
}

/// Each source scores its own index keys, those of complete groups. With one slot of keys that the
/// last source to publish fills, a half-filled group would score otherwise token by token.
#[test]
fn c042_c043_c047_one_token_at_a_time_and_odd_chunks() {
    let mut machine = Machine::new(1);
    let mut texts = [machine.text(&ids(0, 330), 0)];
    let chunks = [1, 1, 1, 2, 3, 5, 7, 31, 1, 64, 1, 127, 1, 85];
    assert_eq!(chunks.iter().sum::<u64>(), 330);
    for settled in chunks {
        let part = Part { settled, drafts: &[], kept: settled };
        let logits = machine.step(&mut texts, &[(0, part)], settled + settled % 3);
        check(logits, [330, 0]);
    }
}

fn pieces(rows: u64, most: u64) -> impl Iterator<Item = Part<'static>> {
    (0..rows.div_ceil(most)).map(move |piece| {
        let settled = most.min(rows - piece * most);
        Part { settled, drafts: &[], kept: settled }
    })
}

#[test]
fn skipping_the_upper_half_changes_no_later_logit_and_no_live_byte() {
    let (tokens, after) = (700, 6);
    let text = ids(2, tokens + after);
    let mut machine = Machine::new(2);
    let from = machine.geometry.upper_from(tokens);
    assert_eq!((machine.geometry.upper.unwrap().tail_tokens, from), (509, 191));
    let mut run = |upper_from, chunk| {
        let mut texts = [machine.text(&text, upper_from)];
        let mut last = HashMap::new();
        for part in pieces(tokens, chunk) {
            last = machine.step(&mut texts, &[(0, part)], 0);
        }
        let mut logits = vec![last.remove(&(0, tokens - 1)).unwrap()];
        let live = machine.live(&texts[0]);
        for part in pieces(after, 1) {
            logits.extend(machine.step(&mut texts, &[(0, part)], 0).into_values());
        }
        (logits, live)
    };
    let (full, live) = run(0, 200);
    for chunk in [240, 97] {
        let (skipped, skipped_live) = run(from, chunk);
        assert!(full == skipped, "logits, chunks of {chunk}");
        for (name, bytes) in &live {
            assert!(*bytes == skipped_live[name], "{name:?}, chunks of {chunk}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn any_chunks_any_batch_any_drafts_any_threads(
        steps in prop::collection::vec(
            ([(0u64..90, 0usize..6, 0u64..6), (0u64..90, 0usize..6, 0u64..6)], any::<bool>(), 0u64..9),
            1..9
        ),
        threads in 1usize..3,
    ) {
        let mut machine = Machine::new(threads);
        let mut texts = [0, 1].map(|seed| machine.text(&ids(seed, 330), 0));
        for (plans, swapped, spare) in steps {
            let mut parts = Vec::new();
            let mut settled_end = [0; 2];
            let tokens: Vec<u64> = texts.iter().map(|text| text.pages.tokens()).collect();
            // Drafts that are right as far as `right` goes, so that some of them are kept.
            let drafts: Vec<Vec<u32>> = (0..2)
                .map(|at| {
                    let (settled, drafts, right) = plans[at];
                    let next = (tokens[at] + settled) as usize;
                    let good = |i: usize| ids(at as u64, 330)[(next + i).min(329)];
                    (0..drafts).map(|i| if (i as u64) < right { good(i) } else { 2047 }).collect()
                })
                .collect();
            for (at, (settled, _, right)) in plans.iter().enumerate() {
                let kept = settled + (*right).min(drafts[at].len() as u64);
                let rows = settled + drafts[at].len() as u64;
                if rows == 0 || *settled == 0 || tokens[at] + rows > 330 {
                    continue;
                }
                settled_end[at] = tokens[at] + kept;
                parts.push((at, Part { settled: *settled, drafts: &drafts[at], kept }));
            }
            if swapped {
                parts.reverse();
            }
            if !parts.is_empty() {
                let rows: u64 =
                    parts.iter().map(|(_, part)| part.settled + part.drafts.len() as u64).sum();
                check(machine.step(&mut texts, &parts, rows + spare), settled_end);
            }
        }
    }

    /// Rows and drafts of changing continuations, of which any number stays; then another one
    /// goes on from there. A step can go back to any place inside it, no further.
    #[test]
    fn rolled_back_and_replayed_is_as_if_run_cold(
        steps in prop::collection::vec((1u64..70, 0u64..6, 0u64..=4, 0u64..9, 0u64..9), 3..8),
        threads in 1usize..3,
        cold_chunk in 1u64..OUTPUTS,
    ) {
        let mut machine = Machine::new(threads);
        let mut texts = [machine.text(&[], 0), machine.text(&ids(0, 330), 0)];
        let mut replayed = HashMap::new();
        for (number, (rows, drafts, quarters, neighbour, spare)) in steps.into_iter().enumerate() {
            let start = texts[0].pages.tokens();
            let settled = rows.saturating_sub(drafts).max(1);
            // Most steps go back; whether 0, all or a part of the rows stays, is drawn.
            let kept = (settled + drafts) * quarters / 4;
            let text = ids(number as u64 + 10, start + settled + drafts);
            texts[0].ids.extend(&text[start as usize..]);
            let drafts = text[(start + settled) as usize..].to_vec();
            let mut parts = vec![(0, Part { settled, drafts: &drafts, kept })];
            if neighbour > 0 {
                parts.push((1, Part { settled: neighbour, drafts: &[], kept: neighbour }));
            }
            let padded = settled + drafts.len() as u64 + neighbour + spare;
            let logits = machine.step(&mut texts, &parts, padded);
            texts[0].ids.truncate((start + kept) as usize);
            let (own, other): (Vec<_>, Vec<_>) =
                logits.into_iter().partition(|((text, _), _)| *text == 0);
            check(other.into_iter().map(|((_, at), row)| ((0, at), row)).collect(), [330, 0]);
            let stay = own.into_iter().filter(|((_, at), _)| *at < start + kept);
            replayed.extend(stay.map(|((_, at), row)| (at, row)));
        }
        let tokens = texts[0].pages.tokens();
        prop_assert_eq!(replayed.len() as u64, tokens);
        let mut fresh = Machine::new(2);
        let mut cold = [fresh.text(&texts[0].ids, 0)];
        for part in pieces(tokens, cold_chunk) {
            for ((_, at), row) in fresh.step(&mut cold, &[(0, part)], 0) {
                prop_assert!(replayed[&at] == row, "position {}", at);
            }
        }
        let (cold, replayed) = (fresh.live(&cold[0]), machine.live(&texts[0]));
        prop_assert_eq!(cold.len(), replayed.len());
        for (name, bytes) in &cold {
            prop_assert!(replayed.get(name) == Some(bytes), "{:?}", name);
        }
    }
}
