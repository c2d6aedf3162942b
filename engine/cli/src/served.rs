//! A model behind the server's protocols.

use std::path::PathBuf;
use std::sync::Arc;

use tandem_engine::Result;
use tandem_engine::model::v41::vision_tower::picture_limits;
use tandem_engine::serve::{
    EngineHandle, KernelUse, Local, MemoryUse, Sequences, ServedModel, ServedPictures,
    ServerOptions,
};

use crate::arguments::Common;
use crate::console;
use crate::limits::Limits;
use crate::prefix_folder::PrefixFolder;
use crate::ready::{Pictures, Ready, Work};

/// What requests are answered with.
pub(crate) struct Served {
    /// The engine's thread.
    pub(crate) engine: EngineHandle,
    /// The text side.
    pub(crate) model: ServedModel,
    /// The defaults, under the model's name.
    pub(crate) options: ServerOptions,
}

/// How to load it.
#[derive(Clone)]
pub(crate) struct Loading {
    /// Sequences that run at once.
    pub(crate) sequences: u64,
    /// Whether a lost device is opened again.
    pub(crate) reopens: bool,
    /// The folder that keeps the prefix cache from one process to the next.
    pub(crate) prefixes: Option<PathBuf>,
}

impl Served {
    /// Loads a model, under its own name or the given one.
    ///
    /// # Errors
    /// Whatever is wrong with the arguments, the checkpoint or the devices.
    pub(crate) fn load(
        common: &Common,
        limits: &Limits,
        Loading { sequences, reopens, prefixes }: Loading,
        name: Option<&str>,
    ) -> Result<Self> {
        let pictures = Pictures::WherePossible;
        let work = Work { sequences, pictures, alike: true, ..Work::ALONE };
        let ready = Ready::load(common, limits, work)?;
        let (numerics, stop_ids) = (ready.numerics(), vec![ready.source.config.eos_token_id]);
        let keep = prefixes.map(|folder| PrefixFolder::new(folder, &ready)).transpose()?;
        let Ready { source, tokenizer, mut engine, .. } = ready;
        let config = source.config;
        if let Some(keep) = &keep {
            keep.begin(&mut engine)?;
        }
        let ranks = || engine.model().iter();
        let memory = ranks().flat_map(|rank| MemoryUse::of(rank.device())).collect();
        let kernels = ranks().enumerate().flat_map(|(rank, runner)| {
            let kernels = runner.network().model().kernels().iter();
            kernels.map(move |(op, row)| KernelUse { op, row, rank })
        });
        let kernels = kernels.collect();
        let sequences = Sequences::new(engine, stop_ids.clone());
        let engine = if reopens {
            let (common, limits) = (common.clone(), limits.clone());
            EngineHandle::spawn_reopening(sequences, move |lost| {
                console::note(&format!("{lost}; loading the model again"));
                let mut engine = Ready::load(&common, &limits, work)?.engine;
                if let Some(keep) = &keep {
                    keep.begin(&mut engine)?;
                }
                Ok(Sequences::new(engine, stop_ids.clone()))
            })?
        } else {
            EngineHandle::spawn(sequences)?
        };
        let limits = picture_limits(&config).ok();
        let pictures = config.image_token_id.zip(limits);
        let pictures =
            pictures.map(|(image_token_id, limits)| ServedPictures { image_token_id, limits });
        let model = ServedModel { tokenizer: Arc::new(tokenizer), pictures };
        let name = name.map_or(source.name, str::to_owned);
        let options = ServerOptions { numerics, memory, kernels, ..ServerOptions::new(name) };
        Ok(Self { engine, model, options })
    }

    /// The same for this process alone.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub(crate) fn local(self) -> Result<Local> {
        Local::new(self.engine, self.model, self.options)
    }
}
