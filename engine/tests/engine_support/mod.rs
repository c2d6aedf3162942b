//! A model without arithmetic that checks every address it is given.
//!
//! A row's state is a hash of its whole prefix, found through the caches alone: the row before it
//! is read from the window. Every list of the step is checked against what the caches hold, and the
//! next token is a function of the state, so a wrong address shows as a failed check or as another
//! token. Two upper layers follow which states are exact after a skipped upper half.

#![allow(dead_code)]

pub mod table;

use std::collections::HashMap;
use tandem_engine::error::Result;
use tandem_engine::exec::{
    DraftLists, DraftSource, Drafter, Engine, EngineOptions, Event, FinishReason, Forward,
    Geometry, Graphs, LogProbs, Replay, Request, RequestId, RowLists, Sample, Sampled, StepLists,
    UpperHalf, Usage, What,
};
use tandem_engine::kv::PAGE_TOKENS;
use tandem_engine::sample::{Draws, Purpose};

/// A position and the state of its prefix.
type Cell = (u64, u64);

/// How drafts relate to what the model would say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafts {
    /// Always right.
    Right,
    /// Always wrong.
    Wrong,
    /// Wrong at the last place.
    WrongLast,
    /// Wrong from a place that depends on the prefix.
    Mixed,
}

/// The model.
pub struct FakeModel {
    pub geometry: Geometry,
    pub drafts: Drafts,
    /// The token after each position, when the test says so.
    pub script: Option<Vec<u32>>,
    /// An id after which logits are no numbers.
    pub poison: Option<u32>,
    /// Fails the step with this number.
    pub fails_at: Option<u64>,
    /// Layers below the middle whose windows are followed: 0 when every row begins with its own.
    pub lower_layers: usize,
    /// Whether to walk all visible entries of every row.
    pub thorough: bool,
    steps: u64,
    /// Rows of each step, padding included.
    pub shapes: Vec<u64>,
    window: HashMap<i32, Cell>,
    /// Exact window entries of each lower layer.
    lower: Vec<HashMap<i32, Cell>>,
    /// Rows that were computed again for their windows alone.
    pub replayed_rows: u64,
    open: HashMap<i32, Cell>,
    entries: [HashMap<i32, Cell>; 2],
    upper: HashMap<i32, Cell>,
    exact: HashMap<i32, Cell>,
    before: HashMap<u64, (u64, i32)>,
}

fn mix(values: &[u64]) -> u64 {
    values.iter().fold(0x9E37_79B9_7F4A_7C15, |hash, value| {
        let mut z = (hash ^ value).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z ^= z >> 29;
        z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 32
    })
}

const ROOT: u64 = 1;

fn state(before: u64, id: u32, position: u64) -> u64 {
    mix(&[before, u64::from(id), position])
}

pub fn geometry() -> Geometry {
    Geometry {
        vocab: 97,
        context_tokens: 100_000,
        layers: 40,
        upper: Some(UpperHalf { first_layer: 38, tail_tokens: 255 }),
        window_tokens: 128,
        history_tokens: 4,
        draft_block: 5,
        noise_token: 96,
        end_token: 1,
        pictures: None,
    }
}

pub fn options() -> EngineOptions {
    EngineOptions {
        sequences: 8,
        step_tokens: 256,
        chunk_tokens: 256,
        step_us: None,
        resume_points: 0,
        replay: Replay::Exact,
        pages: 512,
        context_tokens: 100_000,
        draft_tokens: 5,
        drafts: DraftSource::Dspark,
        least_survival: 0.0,
        skip_upper_half: true,
        step_sizes: Vec::new(),
        pictures: 0,
        graphs: Graphs::Full,
        biases: 4,
        seed: 1,
    }
}

impl FakeModel {
    pub fn new(drafts: Drafts) -> Self {
        Self {
            geometry: geometry(),
            drafts,
            script: None,
            poison: None,
            fails_at: None,
            thorough: true,
            steps: 0,
            shapes: Vec::new(),
            window: HashMap::new(),
            lower: Vec::new(),
            lower_layers: 0,
            replayed_rows: 0,
            open: HashMap::new(),
            entries: [HashMap::new(), HashMap::new()],
            upper: HashMap::new(),
            exact: HashMap::new(),
            before: HashMap::new(),
        }
    }

    fn next(&self, state: u64, at: u64, greedy: bool, draws: Draws) -> u32 {
        if let Some(script) = &self.script {
            return script.get(at as usize).copied().unwrap_or(0);
        }
        let drawn = if greedy { 0.0 } else { draws.uniform(at, Purpose::Token) };
        (mix(&[state, u64::from(drawn.to_bits())]) % self.geometry.vocab) as u32
    }

    /// The answer to a prompt, without any cache.
    pub fn answer(&self, prompt: &[u32], tokens: u64, greedy: bool, draws: Draws) -> Vec<u32> {
        let mut ids = prompt.to_vec();
        let mut last = ROOT;
        for (at, id) in prompt.iter().enumerate() {
            last = state(last, *id, at as u64);
        }
        for _ in 0..tokens {
            let at = ids.len() as u64;
            let id = self.next(last, at, greedy, draws);
            last = state(last, id, at);
            ids.push(id);
        }
        ids[prompt.len()..].to_vec()
    }

    /// States of a prefix, oldest first.
    fn prefix(&self, mut last: u64, tokens: u64) -> Vec<u64> {
        let mut states = vec![last];
        while states.len() < tokens as usize {
            last = self.before[&last].0;
            states.push(last);
        }
        states.reverse();
        states
    }

    fn row(&mut self, lists: &StepLists, row: usize) -> u64 {
        let rows = &lists.rows;
        let window = self.geometry.window_tokens as usize;
        if rows.position[row] < 0 {
            check_padding(rows, row, window, self.geometry.history_tokens as usize);
            return 0;
        }
        let (at, id) = (rows.position[row] as u64, rows.id[row]);
        let before = match at {
            0 => ROOT,
            _ => match rows.window_at[row * window + window - 2] {
                // Nothing before it is computed in this run: its prefix is what the entries say.
                -1 => self.entries[0][&located(lists, rows.sequence[row], 1, at - 1)].1,
                address => self.window[&address].1,
            },
        };
        let last = state(before, id as u32, at);
        self.before.insert(last, (before, id));
        for store in [rows.window_store[row], rows.open_store[row]] {
            assert!(store >= 0, "position {at} is stored nowhere");
        }
        self.window.insert(rows.window_store[row], (at, last));
        self.open.insert(rows.open_store[row], (at, last));
        let stores = [rows.store[0][row], rows.store[1][row]];
        if stores[0] < 0 {
            let entry = located(lists, rows.sequence[row], 1, at);
            assert_eq!(self.entries[0][&entry], (at, last), "an entry that is not stored again");
            assert!(self.lower_layers > 0 && stores[1] < 0);
            self.replayed_rows += 1;
        } else {
            self.entries[0].insert(stores[0], (at, last));
        }
        let members = &rows.open_members[row * 2..row * 2 + 2];
        if at % 2 == 1 {
            let cells = [self.open[&members[0]], self.open[&members[1]]];
            assert_eq!(cells, [(at - 1, before), (at, last)], "members of a group");
            if stores[0] >= 0 {
                self.entries[1].insert(stores[1], (at / 2, last));
            }
        } else {
            assert_eq!((members, rows.store[1][row]), (&[-1, -1][..], -1));
        }
        last
    }

    /// Everything a row may read, against its own prefix.
    fn check_reads(&self, lists: &StepLists, row: usize, last: u64) {
        let rows = &lists.rows;
        let (window, at) = (self.geometry.window_tokens, rows.position[row] as u64);
        let states = self.prefix(last, at + 1);
        for i in 0..window {
            let address = rows.window_at[row * window as usize + i as usize];
            match (at + 1 + i).checked_sub(window) {
                None => assert_eq!(address, -1),
                Some(_) if address < 0 && rows.store[0][row] < 0 => {}
                Some(read) => {
                    assert_eq!(self.window[&address], (read, states[read as usize]), "window");
                }
            }
        }
        for back in 0..self.geometry.history_tokens {
            let held = rows.history[row * self.geometry.history_tokens as usize + back as usize];
            let expected =
                at.checked_sub(back).map_or(-1, |at| self.before[&states[at as usize]].1);
            assert_eq!(held, expected, "history of position {at}");
        }
        for (i, ratio) in [1u64, 2].into_iter().enumerate() {
            let visible = rows.visible[i][row] as u64;
            assert_eq!(visible, (at + 1) / ratio, "visible entries");
            assert!(visible <= lists.entries(ratio));
            for entry in if self.thorough { 0 } else { visible.saturating_sub(3) }..visible {
                let address = located(lists, rows.sequence[row], ratio, entry);
                let state = states[(entry * ratio + ratio - 1) as usize];
                assert_eq!(self.entries[i].get(&address), Some(&(entry, state)), "entry");
            }
        }
    }

    /// The lower layers: which of their window entries, and which rows at the middle, are exact. Only
    /// exact rows leave compressed entries.
    fn run_lower(&mut self, rows: &RowLists, states: &[u64]) -> Vec<bool> {
        let window = self.geometry.window_tokens as usize;
        let live: Vec<_> = (0..rows.id.len()).filter(|row| rows.position[*row] >= 0).collect();
        let mut exact = vec![true; rows.id.len()];
        self.lower.resize_with(self.lower_layers, HashMap::new);
        for layer in 0..self.lower_layers {
            let mut cells = std::mem::take(&mut self.lower[layer]);
            for &row in &live {
                cells.remove(&rows.window_store[row]);
                if exact[row] {
                    cells.insert(rows.window_store[row], (rows.position[row] as u64, states[row]));
                }
            }
            for &row in &live {
                let cell = (rows.position[row] as u64, states[row]);
                exact[row] = self.sees(&cells, rows, row, window, cell);
            }
            self.lower[layer] = cells;
        }
        for row in live {
            assert!(exact[row] || rows.store[0][row] < 0, "a stored entry is not exact");
        }
        exact
    }

    /// The two upper layers: what they store, and whether outputs are exact.
    fn run_upper(&mut self, rows: &RowLists, at: Option<&[i32]>, states: &[u64], middle: &[bool]) {
        let window = self.geometry.window_tokens as usize;
        let of_row = |row: usize| at.map_or(row, |at| at[row] as usize);
        let live = (0..rows.id.len()).filter(|row| rows.position[*row] >= 0);
        let live: Vec<_> = live.collect();
        for &row in &live {
            let cell = (rows.position[row] as u64, states[of_row(row)]);
            self.upper.remove(&rows.window_store[row]);
            if middle[of_row(row)] {
                self.upper.insert(rows.window_store[row], cell);
            }
        }
        for &row in &live {
            let cell = (rows.position[row] as u64, states[of_row(row)]);
            self.exact.remove(&rows.window_store[row]);
            if self.sees(&self.upper, rows, row, window, cell) {
                self.exact.insert(rows.window_store[row], cell);
            }
        }
        for output in &rows.output_at {
            if *output >= 0 {
                let row = *output as usize;
                let cell = (rows.position[row] as u64, states[of_row(row)]);
                assert!(
                    self.sees(&self.exact, rows, row, window, cell),
                    "logits of position {} are not exact",
                    cell.0
                );
            }
        }
    }

    fn sees(
        &self,
        cells: &HashMap<i32, Cell>,
        rows: &RowLists,
        row: usize,
        window: usize,
        (at, last): Cell,
    ) -> bool {
        let mut expected = last;
        for i in (0..window).rev() {
            let Some(read) = (at as usize + 1 + i).checked_sub(window) else { return true };
            let address = rows.window_at[row * window + i];
            if cells.get(&address) != Some(&(read as u64, expected)) {
                return false;
            }
            expected = self.before[&expected].0;
        }
        true
    }

    fn sampled(
        &self,
        rows: &RowLists,
        first: usize,
        states: &[u64],
        sample: &Sample<'_>,
    ) -> Sampled {
        let mut sampled = Sampled::default();
        let greedy = sample.parameters.is_greedy();
        for i in 0..=sample.drafts.len() {
            let row = rows.output_at[first + i] as usize;
            if self.poison.is_some_and(|id| rows.id[row] == id as i32) {
                return Sampled { accepted: i as u64, token: None, ..sampled };
            }
            let at = sample.position + i as u64;
            assert_eq!(rows.position[row] as u64 + 1, at, "an output's position");
            let token = self.next(states[row], at, greedy, sample.draws);
            if sample.parameters.log_probs.is_some() {
                let chosen = -(token as f32);
                sampled.log_probs.push(LogProbs { chosen, top: vec![(token, chosen)] });
            }
            if sample.drafts.get(i) != Some(&token) {
                return Sampled { accepted: i as u64, token: Some(token), ..sampled };
            }
        }
        unreachable!("the row after the last draft ends the loop")
    }
}

fn located(lists: &StepLists, sequence: i32, ratio: u64, entry: u64) -> i32 {
    let per_page = PAGE_TOKENS / ratio;
    let row = sequence as u64 * lists.table_pages;
    let page = lists.table[(row + entry / per_page) as usize];
    if page < 0 { -1 } else { page * per_page as i32 + (entry % per_page) as i32 }
}

fn check_padding(rows: &RowLists, row: usize, window: usize, history: usize) {
    let none = [rows.id[row], rows.sequence[row], rows.window_store[row], rows.open_store[row]];
    assert_eq!(none, [-1; 4]);
    assert_eq!([rows.store[0][row], rows.store[1][row]], [-1; 2]);
    assert_eq!([rows.visible[0][row], rows.visible[1][row], rows.picture[row]], [0; 3]);
    assert!(rows.window_at[row * window..(row + 1) * window].iter().all(|at| *at == -1));
    assert!(rows.open_members[row * 2..row * 2 + 2].iter().all(|at| *at == -1));
    assert!(rows.history[row * history..(row + 1) * history].iter().all(|id| *id == -1));
    assert!(!rows.output_at.contains(&(row as i32)));
}

fn check_sizes(lists: &StepLists, window: usize, history: usize) {
    let rows = &lists.rows;
    let tokens = rows.id.len();
    for list in [&rows.position, &rows.sequence, &rows.picture, &rows.window_store] {
        assert_eq!(list.len(), tokens);
    }
    assert_eq!((rows.window_at.len(), rows.history.len()), (tokens * window, tokens * history));
    assert_eq!((rows.open_store.len(), rows.open_members.len()), (tokens, tokens * 2));
    for list in rows.visible.iter().chain(&rows.store) {
        assert_eq!(list.len(), tokens);
    }
    assert_eq!(lists.table.len() as u64, lists.sequences * lists.table_pages);
}

impl Forward for FakeModel {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn step(&mut self, lists: &StepLists, samples: &[Sample<'_>]) -> Result<Vec<Sampled>> {
        check_sizes(
            lists,
            self.geometry.window_tokens as usize,
            self.geometry.history_tokens as usize,
        );
        self.steps += 1;
        self.shapes.push(lists.rows.tokens());
        let states: Vec<u64> = (0..lists.rows.id.len()).map(|row| self.row(lists, row)).collect();
        if self.fails_at == Some(self.steps) {
            let invariant = "a fault of the test's device".into();
            return Err(tandem_engine::Error::Internal { invariant });
        }
        for (row, state) in states.iter().enumerate() {
            if lists.rows.position[row] >= 0 {
                self.check_reads(lists, row, *state);
            }
        }
        let middle = self.run_lower(&lists.rows, &states);
        match &lists.upper {
            None => self.run_upper(&lists.rows, None, &states, &middle),
            Some(upper) => self.run_upper(&upper.rows, Some(&upper.at), &states, &middle),
        }
        let mut first = 0;
        let mut sampled = Vec::new();
        for sample in samples {
            sampled.push(self.sampled(&lists.rows, first, &states, sample));
            let drafts = !sample.drafts.is_empty();
            first += if drafts { self.geometry.draft_block as usize + 1 } else { 1 };
        }
        assert!(lists.rows.output_at[first..].iter().all(|row| *row == -1));
        Ok(sampled)
    }

    fn draft(&mut self, lists: &DraftLists, drafters: &[Drafter]) -> Result<Vec<Vec<u32>>> {
        let (block, sequences) = (lists.block as usize, lists.sequences as usize);
        let columns = self.geometry.window_tokens as usize + block;
        let live = |row: &usize| row % sequences < drafters.len();
        let rows = 0..block * sequences;
        let mut stores: Vec<_> =
            rows.clone().filter(live).map(|row| lists.window_store[row]).collect();
        stores.sort_unstable();
        stores.dedup();
        assert_eq!(stores.len(), block * drafters.len(), "scratch entries are apart");
        for row in rows.filter(|row| !live(row)) {
            let none = [lists.id[row], lists.position[row], lists.window_store[row]];
            assert_eq!(none, [-1; 3], "padding");
            let list = &lists.window_at[row * columns..(row + 1) * columns];
            assert!(list.iter().all(|at| *at == -1), "padding");
        }
        for store in stores {
            self.window.insert(store, (u64::MAX, 0));
            self.exact.remove(&store);
        }
        let mut drafts = Vec::new();
        for (slot, drafter) in drafters.iter().enumerate() {
            let anchor = lists.position[slot] as u64;
            assert_eq!(drafter.position, anchor + 1);
            let context = self.geometry.window_tokens as usize;
            let last = self.exact[&lists.window_at[slot * columns + context - 1]];
            assert_eq!(last.0, anchor - 1);
            let mut expected = last.1;
            for place in 0..block {
                let row = place * sequences + slot;
                let id = if place == 0 { lists.id[slot] } else { self.geometry.noise_token as i32 };
                assert_eq!(lists.id[row], id);
                assert_eq!(lists.position[row], anchor as i32 + place as i32);
                let list = &lists.window_at[row * columns..(row + 1) * columns];
                assert_eq!(list, &lists.window_at[slot * columns..(slot + 1) * columns]);
                assert_eq!(list[context + place], lists.window_store[row]);
            }
            for i in (0..context).rev() {
                let address = lists.window_at[slot * columns + i];
                match (anchor as usize + i).checked_sub(context) {
                    None => assert_eq!(address, -1),
                    Some(read) => {
                        assert_eq!(self.exact[&address], (read as u64, expected), "context");
                        expected = self.before[&expected].0;
                    }
                }
            }
            drafts.push(self.guesses(last.1, lists.id[slot] as u32, drafter, block));
        }
        Ok(drafts)
    }
}

impl FakeModel {
    fn guesses(&self, last: u64, anchor: u32, drafter: &Drafter, block: usize) -> Vec<u32> {
        let mut last = state(last, anchor, drafter.position - 1);
        let right = match self.drafts {
            Drafts::Right => block,
            Drafts::Wrong => 0,
            Drafts::WrongLast => block - 1,
            Drafts::Mixed => (last % (block as u64 + 1)) as usize,
        };
        let greedy = drafter.temperature <= 1e-5;
        (0..block)
            .map(|place| {
                let at = drafter.position + place as u64;
                let id = self.next(last, at, greedy, drafter.draws);
                last = state(last, id, at);
                if place < right { id } else { (id + 1) % self.geometry.vocab as u32 }
            })
            .collect()
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    pub tokens: Vec<u32>,
    pub log_probs: Vec<LogProbs>,
    pub cached_tokens: u64,
    pub finish: Option<FinishReason>,
    pub usage: Usage,
}

pub fn collect(answers: &mut HashMap<RequestId, Answer>, events: Vec<Event>) {
    for event in events {
        let answer = answers.entry(event.request).or_default();
        assert_eq!(answer.finish, None, "nothing follows the end");
        match event.what {
            What::Started { cached_tokens } => answer.cached_tokens = cached_tokens,
            What::Token { id, log_probs, .. } => {
                answer.tokens.push(id);
                answer.log_probs.extend(log_probs);
            }
            What::Finished { reason, usage } => {
                (answer.finish, answer.usage) = (Some(reason), usage);
            }
        }
    }
}

/// Runs until nothing is left, checking the pages after each step.
pub fn finish<F: Forward>(engine: &mut Engine<F>) -> HashMap<RequestId, Answer> {
    let mut answers = HashMap::new();
    let mut steps = 0;
    while !engine.is_idle() {
        collect(&mut answers, engine.step().unwrap());
        engine.check().unwrap();
        steps += 1;
        assert!(steps < 100_000, "the engine spins");
    }
    answers
}

/// Answers of requests that are all there at the start, in order.
pub fn answers<F: Forward>(engine: &mut Engine<F>, requests: Vec<Request>) -> Vec<Answer> {
    let ids: Vec<_> = requests.into_iter().map(|request| engine.add(request).unwrap()).collect();
    let mut answers = finish(engine);
    ids.iter().map(|id| answers.remove(id).unwrap()).collect()
}

/// A prompt that depends on its number.
pub fn prompt(number: u64, tokens: u64) -> Vec<u32> {
    (0..tokens).map(|at| (mix(&[number, at]) % 90) as u32).collect()
}

/// A greedy request.
pub fn request(prompt: Vec<u32>, max_tokens: u64) -> Request {
    Request { prompt, max_tokens: Some(max_tokens), drafts: true, ..Request::default() }
}
