//! The page at `/`: a chat over the server's own protocol.
//!
//! Its files are embedded as they are written. The policy that is sent with each of them lets the page load nothing but
//! them, talk to nobody but this server and parse no text as markup, whatever a model says.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::api::error::ApiError;

/// What the page may do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
/// Where its files but the first lie.
const FOLDER: &str = "/page/";

/// A file of the page.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: File = File { name: "index.html", kind: HTML, text: include_str!("index.html") };
const OTHERS: [File; 9] = [
    File { name: "style.css", kind: "text/css; charset=utf-8", text: include_str!("style.css") },
    File { name: "icon.svg", kind: "image/svg+xml", text: include_str!("icon.svg") },
    File { name: "main.js", kind: SCRIPT, text: include_str!("main.js") },
    File { name: "conversation.js", kind: SCRIPT, text: include_str!("conversation.js") },
    File { name: "markdown.js", kind: SCRIPT, text: include_str!("markdown.js") },
    File { name: "pictures.js", kind: SCRIPT, text: include_str!("pictures.js") },
    File { name: "server.js", kind: SCRIPT, text: include_str!("server.js") },
    File { name: "settings.js", kind: SCRIPT, text: include_str!("settings.js") },
    File { name: "turns.js", kind: SCRIPT, text: include_str!("turns.js") },
];

/// Whether a path is of the page, which is the same for everyone and asks for a key itself.
pub(super) fn is_part(path: &str) -> bool {
    path == "/" || path.starts_with(FOLDER)
}

/// Answers `/`.
pub(super) async fn index() -> Response {
    INDEX.into_response()
}

/// Answers `/page/NAME`.
pub(super) async fn file(
    name: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let Ok(Path(name)) = name else { return Err(ApiError::no_such_path(uri.path())) };
    let file = OTHERS.into_iter().find(|file| file.name == name);
    file.map(File::into_response).ok_or_else(|| ApiError::no_such_path(&format!("{FOLDER}{name}")))
}

impl IntoResponse for File {
    fn into_response(self) -> Response {
        let headers: [(HeaderName, &str); 5] = [
            (header::CONTENT_TYPE, self.kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            // Another version of the server has another page.
            (header::CACHE_CONTROL, "no-cache"),
        ];
        (StatusCode::OK, headers, self.text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_names_is_there() {
        let names: Vec<_> = OTHERS.iter().map(|file| file.name).collect();
        let mut named = 0;
        for file in OTHERS.iter().chain([&INDEX]) {
            let quoted = file
                .text
                .split('"')
                .filter_map(|word| word.strip_prefix("page/").or(word.strip_prefix("./")));
            for name in quoted {
                assert!(names.contains(&name), "{}: {name}", file.name);
                named += 1;
            }
        }
        assert!(named > OTHERS.len(), "{named}");
    }

    #[test]
    fn no_file_is_of_another_place_or_has_markup_of_text() {
        for file in OTHERS.iter().chain([&INDEX]) {
            for never in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!file.text.contains(never), "{}: {never}", file.name);
            }
            for address in file.text.split("//").skip(1) {
                assert!(
                    !address.starts_with(char::is_alphanumeric)
                        || address.starts_with("www.w3.org/2000/svg"),
                    "{}: {address}",
                    file.name
                );
            }
            assert!(
                !file.text.contains("style=") && !file.text.contains("onclick="),
                "{}",
                file.name
            );
        }
    }
}
