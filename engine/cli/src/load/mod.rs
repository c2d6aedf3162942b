//! `tandem bench serve`: what clients of a server get, at rates or numbers of requests at once that grow. Any server of
//! OpenAI's protocol will do; it runs elsewhere, so that the two do not share a process.

mod arrivals;
mod client;
mod command;
mod page;
mod summary;
mod timeline;
mod workload;

pub(crate) use command::{Options, run};
