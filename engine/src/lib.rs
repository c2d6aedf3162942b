//! The engine: loader, model, caches, scheduler, text, server.

pub mod vision;
