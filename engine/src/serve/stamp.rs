//! What every body of one reply begins with.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::app::App;
use super::random::random;

/// Id, time and model of a reply.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    id: String,
    created: u64,
    model: String,
}

impl Stamp {
    /// A stamp of now; `kind` begins the id, its separator included.
    pub(super) fn new(kind: &str, app: &App) -> Self {
        Self {
            id: format!("{kind}{:016x}{:016x}", random(), random()),
            created: now_seconds(),
            model: app.options.served_model_name.clone(),
        }
    }

    /// The id of the reply.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Seconds since 1970.
    pub(super) fn created(&self) -> u64 {
        self.created
    }

    /// The model's name.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// A body with these fields and `object`.
    pub(super) fn json(&self, object: &str) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("id".to_owned(), self.id.as_str().into());
        body.insert("object".to_owned(), object.into());
        body.insert("created".to_owned(), self.created.into());
        body.insert("model".to_owned(), self.model.as_str().into());
        body
    }
}

/// Seconds since 1970; 0 on a clock before that.
pub(super) fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
