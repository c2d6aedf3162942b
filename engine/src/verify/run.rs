//! A whole folder of golden files.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use tandem_hal::{Device, Place};

use crate::error::{Error, Result};
use crate::model::v41::vision_tower::{Tower, TowerWeights};
use crate::model::v41::{Config, ModelWeights, Recipe, names};
use crate::text::{Tokenizer, VocabularyMap};
use crate::weights::{Checkpoint, Content, Files, Progress, Share, Source};

use super::subject::Subject;
use super::{GoldenFile, Report, draft, free, pictures, teacher};

const PERPLEXITY: &str = "perplexity.json";
const PERPLEXITY_LIMIT_BYTES: u64 = 64 << 20;
const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_LIMIT_BYTES: u64 = 64 << 20;

/// What is verified, against what.
pub struct Run<'a> {
    /// The checkpoint.
    pub model: &'a Files,
    /// The folder of golden files.
    pub goldens: &'a Files,
    /// The device.
    pub device: &'a Arc<dyn Device>,
}

#[derive(Deserialize)]
struct Passage {
    ids: Vec<u32>,
    nll_per_token: f64,
}

impl Run<'_> {
    /// Loads the model, replays every golden file, and reports. `progress` hears of weights read,
    /// `note` of each file begun.
    ///
    /// # Errors
    /// When the checkpoint or a golden file is unsound, or the device fails.
    pub fn report(
        &self,
        config: &Config,
        recipe: &Recipe,
        progress: &mut dyn FnMut(Progress),
        note: &mut dyn FnMut(&str),
    ) -> Result<Report> {
        let names = self.golden_names()?;
        let files = names.iter().map(|name| GoldenFile::read(self.goldens, name));
        let files: Vec<GoldenFile> = files.collect::<Result<_>>()?;
        let passages = self.passages()?;
        let longest = self.longest(&files, &passages)?;
        let (weights, tower) = self.load(config, progress)?;
        let mut subject = Subject::new(self.device, (config, recipe), weights, longest)?;
        let mut report = Report::default();
        for file in &files {
            note(file.name());
            check_ids(file, config)?;
            teacher::compare(&mut subject, file, &mut report)?;
            draft::compare(&mut subject, file, &mut report)?;
            let pictures =
                pictures::compare(&subject, tower.as_ref(), (self.goldens, file), &mut report)?;
            free::compare(&mut subject, file, &pictures, &mut report)?;
        }
        for (name, passage) in &passages {
            note(name);
            let passage = (name.as_str(), &passage.ids[..], passage.nll_per_token);
            free::perplexity(&mut subject, passage, &mut report)?;
        }
        Ok(report)
    }

    fn golden_names(&self) -> Result<Vec<String>> {
        let mut names = self.goldens.names()?;
        names.retain(|name| name.ends_with(".safetensors"));
        names.sort();
        if names.is_empty() {
            let problem = "has no .safetensors file; name a folder of golden files";
            return Err(Error::argument("--goldens", problem));
        }
        Ok(names)
    }

    fn passages(&self) -> Result<BTreeMap<String, Passage>> {
        if !self.goldens.contains(PERPLEXITY) {
            return Ok(BTreeMap::new());
        }
        let bytes = self.goldens.read(PERPLEXITY, PERPLEXITY_LIMIT_BYTES)?;
        let passages: BTreeMap<String, Passage> = serde_json::from_slice(&bytes)
            .map_err(|e| Error::File { file: PERPLEXITY.into(), problem: e.to_string() })?;
        match passages.iter().find(|(_, p)| p.ids.len() < 2) {
            None => Ok(passages),
            Some((name, _)) => Err(Error::File {
                file: PERPLEXITY.into(),
                problem: format!("passage {name} has no target; give two ids or more"),
            }),
        }
    }

    fn longest(&self, files: &[GoldenFile], passages: &BTreeMap<String, Passage>) -> Result<u64> {
        let mut longest = passages.values().map(|p| p.ids.len()).max().unwrap_or(0);
        for file in files {
            let greedy = file.integers("greedy")?.map_or(0, |g| g.len());
            longest = longest.max(file.ids()?.len() + greedy);
        }
        Ok(longest as u64)
    }

    fn load(
        &self,
        config: &Config,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(ModelWeights, Option<Tower>)> {
        let checkpoint = Checkpoint::open(self.model)?;
        names::check(config, &checkpoint)?;
        let map = if let Some(engram) = &config.engram {
            let bytes = self.model.read(TOKENIZER, TOKENIZER_LIMIT_BYTES)?;
            let unsound = |problem: String| Error::File { file: TOKENIZER.into(), problem };
            let tokenizer = Tokenizer::from_bytes(&bytes).map_err(|e| unsound(e.to_string()))?;
            let map = VocabularyMap::new(&tokenizer, engram.compressed_vocab_size as usize)
                .map_err(|e| unsound(e.to_string()))?;
            map.ids().to_vec()
        } else {
            vec![]
        };
        let source = Source {
            content: Content::Checkpoint(&checkpoint),
            share: Share::WHOLE,
            tables: Place::Device,
        };
        let device = self.device.as_ref();
        let weights = ModelWeights::load(device, config, (&map, true), &source, progress)?;
        let tower = config.vision.as_ref().map(|_| {
            let weights = TowerWeights::load(device, config, &source, progress)?;
            Tower::plan(device, config, weights)
        });
        Ok((weights, tower.transpose()?))
    }
}

fn check_ids(file: &GoldenFile, config: &Config) -> Result<()> {
    let ids = file.ids()?;
    let outside = ids.values.iter().find(|id| **id < 0 || **id as usize >= config.vocab_size);
    match outside {
        None => Ok(()),
        Some(id) => Err(Error::Tensor {
            file: file.name().into(),
            tensor: "ids".into(),
            problem: format!("id {id} is outside a vocabulary of {}", config.vocab_size),
        }),
    }
}
