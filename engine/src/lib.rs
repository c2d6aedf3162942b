//! The engine: loader, model, caches, scheduler, text, server.

pub mod embed;
pub mod error;
pub mod exec;
pub mod grammar;
pub mod kv;
pub mod measure;
pub mod model;
pub mod plan;
pub mod regular_file;
pub mod sample;
pub mod serve;
pub mod spec;
pub mod text;
pub mod verify;
pub mod vision;
pub mod weights;

pub use error::{Error, Result};
