//! The server, over a scripted engine: every case is named after its number where it has one.

mod anthropic;
mod api_keys;
mod batch;
mod bodies;
mod browser;
mod characters;
mod choices;
mod client;
mod demo;
mod disconnects;
#[path = "../engine_support/mod.rs"]
mod engine_support;
mod faults;
mod fields;
mod first_token;
mod forms;
mod joined;
mod large_bodies;
mod life;
mod limits;
mod load;
mod log_probabilities;
mod messages;
mod metrics;
#[path = "../model_support/mod.rs"]
mod model_support;
mod overload;
mod page;
mod pictures;
mod records;
mod responses;
mod scripted;
mod sequences;
mod server;
mod shapes;
mod stops;
mod support;
mod tokens;
mod tool_calls;
