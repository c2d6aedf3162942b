//! The engine: loader, model, caches, scheduler, text, server.
