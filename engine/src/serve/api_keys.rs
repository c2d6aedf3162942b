//! Who may ask: the keys that requests have to name one of.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::api::anthropic::error::MessagesError;
use super::api::error::ApiError;
use super::app::App;
use super::page;

/// Paths that say whether the server works, to whoever restarts it or sends it requests.
const OPEN_PATHS: [&str; 2] = ["/health", "/ready"];

/// Keys, of which a request names one as `Authorization: Bearer KEY` or `x-api-key: KEY`. None at all lets everyone in.
/// Only digests are kept, and what a request names is compared with every one of them in the same time.
#[derive(Clone, Default)]
pub struct ApiKeys(Vec<[u8; 32]>);

impl ApiKeys {
    /// Exactly these keys.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Sha256::digest(key).into()).collect())
    }

    /// Whether headers name a key, or there is none to name.
    fn admit(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
        });
        let named = headers.get("x-api-key").map(HeaderValue::as_bytes).into_iter();
        self.0.is_empty() || named.chain(bearer).any(|key| self.has(key))
    }

    fn has(&self, key: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(key).into();
        let found = self.0.iter().fold(Choice::from(0), |found, own| found | own.ct_eq(&digest));
        found.into()
    }
}

/// How many there are; neither keys nor digests.
impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

/// Answers 401 to a request that names no key, in the shape of the API it asked.
pub(super) async fn check_key(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let is_open = OPEN_PATHS.contains(&path) || page::is_part(path);
    if is_open || app.options.api_keys.admit(request.headers()) {
        return next.run(request).await;
    }
    let refusal = ApiError::no_key();
    match path.starts_with("/v1/messages") {
        true => MessagesError::from(refusal).into_response(),
        false => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_request_names_one_of_the_keys() {
        let keys = ApiKeys::new(["first", "second"]);
        for good in [
            ("authorization", "Bearer second"),
            ("authorization", "bearer  first "),
            ("x-api-key", "first"),
        ] {
            assert!(keys.admit(&headers(&[good])), "{good:?}");
        }
        for bad in [
            ("authorization", "second"),
            ("authorization", "Basic second"),
            ("authorization", "Bearer"),
            ("authorization", "Bearer secon"),
            ("authorization", "Bearer second2"),
            ("x-api-key", ""),
        ] {
            assert!(!keys.admit(&headers(&[bad])), "{bad:?}");
        }
        assert!(!keys.admit(&headers(&[])));
        assert!(keys.admit(&headers(&[("authorization", "Bearer x"), ("x-api-key", "first")])));
        assert!(ApiKeys::default().admit(&headers(&[])));
    }

    #[test]
    fn keys_are_not_printed() {
        assert_eq!(format!("{:?}", ApiKeys::new(["secret"])), "1 keys");
    }
}
