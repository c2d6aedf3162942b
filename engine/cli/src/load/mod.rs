//! `tandem bench serve`: what clients of a server get, at rates or numbers of requests at once that grow. Any server of
//! OpenAI's protocol will do; it runs elsewhere, so that the two do not share a process. And the engine under load without
//! a server: `tandem bench throughput`, `latency` and `tune`.

mod arrivals;
mod client;
mod command;
mod csv;
mod offline;
mod offline_command;
mod page;
mod pareto;
mod summary;
mod timeline;
mod tune;
mod workload;

pub(crate) use command::{Options, run};
pub(crate) use offline_command::{Latency, Throughput, latency, throughput};
pub(crate) use tune::{Tune, tune};
