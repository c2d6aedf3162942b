//! The page at `/`, in a headless Chromium.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tandem_engine::serve::ApiKeys;

use crate::browser::Browser;
use crate::demo;
use crate::scripted::{Script, Scripted, Then};
use crate::server::TestServer;
use crate::support::ids;

/// Enter, as WebDriver spells it.
const ENTER: &str = "\u{E007}";
const ESCAPE: &str = "\u{E00C}";
/// Whether the last answer is over.
const OVER: &str = "!!document.querySelector('.answer:last-child:not(.under-way)')";

fn saying(text: &str) -> Scripted {
    let mut scripted = Scripted::saying(ids(text));
    scripted.limits.pictures = true;
    scripted
}

#[test]
fn its_files_are_served_with_a_policy_and_without_a_key() {
    let server = TestServer::with(saying("Hi"), |options| options.api_keys = ApiKeys::new(["one"]));
    for (path, kind) in [
        ("/", "text/html"),
        ("/page/style.css", "text/css"),
        ("/page/main.js", "text/javascript"),
        ("/page/icon.svg", "image/svg+xml"),
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.header("content-type").unwrap().starts_with(kind), "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    server.get("/page/other.js").refusal(404);
    server.post("/", &json!({})).refusal(405);
    server.get("/v1/models").refusal(401);
}

#[test]
fn an_answer_of_the_demo_streams_and_stays() {
    let Some(browser) = Browser::open(&demo::SERVER) else { return };
    browser.until("document.querySelector('#model').textContent === 'demo'");
    browser.photograph("empty");
    browser
        .run("document.querySelector('#settings').querySelector('[name=maxTokens]').value = '40'");
    browser.run("document.querySelector('[name=temperature]').value = '0'");
    browser.run("document.querySelector('#settings form').dispatchEvent(new Event('input'))");
    // How often the answer was shown as it grew.
    browser.run(
        "window.sizes = new Set(); new MutationObserver(() => sizes.add(document.querySelector('.answer')?.textContent.length))\
         .observe(document.querySelector('#log'), { subtree: true, childList: true, characterData: true })",
    );
    browser.write("#question", "Who are you?");
    browser.write("#question", ENTER);
    browser.until(OVER);
    assert!(browser.value("window.sizes.size").as_u64().unwrap() > 5);
    // The demo thinks until its tokens are used up. That is folded away, and can be unfolded.
    let thoughts = browser.text(".thoughts");
    assert!(thoughts.len() > 40, "{thoughts}");
    assert_eq!(browser.value("document.querySelector('.thinking').open"), false);
    browser.click(".thinking summary");
    assert_eq!(browser.value("document.querySelector('.thinking').open"), true);
    assert_eq!(browser.text(".problem"), "Cut off at the limit of tokens.");
    browser.photograph("thinking");
    // The server says the same without the page.
    let asked = json!({
        "messages": [{ "role": "user", "content": "Who are you?" }], "max_tokens": 40, "temperature": 0,
    });
    let said = demo::SERVER.chat(&asked).ok();
    assert_eq!(said["choices"][0]["message"]["reasoning_content"], thoughts);
    browser.reload();
    browser.until(OVER);
    assert_eq!(browser.text(".thoughts"), thoughts);
    assert_eq!(browser.value("document.querySelector('[name=maxTokens]').value"), "40");
    // A new conversation forgets it, when told to.
    browser.click("#new");
    browser.accept();
    browser.until("!document.querySelector('.answer')");
    browser.reload();
    assert_eq!(browser.value("document.querySelectorAll('article').length"), 0);
}

#[test]
fn nothing_that_a_model_says_is_markup() {
    let hostile = "Let me think about <b>it</b></think>\
        <img src=x onerror=\"window.bad=1\"><script>window.bad=1</script>\n\n\
        # A <i>title</i>\n\n\
        [good](https://example.com/a?b=c) [bad](javascript:window.bad=1) ![x](https://example.com/x.png)\n\n\
        - one **bold <u>item</u>**\n- two `<s>`\n    1. deeper\n\n\
        | a | b |\n|---|---|\n| <td> | ~~x~~ |\n\n\
        ```html\n<script>window.bad=1</script>\n```\n\n> quoted <q>\n\n5 * 3 * 2 = 30, a_b_c";
    let server = TestServer::of(saying(hostile));
    let Some(browser) = Browser::open(&server) else { return };
    browser.write("#question", "<h1>Hi</h1>");
    browser.click("#send");
    browser.until(OVER);
    browser.photograph("hostile");
    assert_eq!(browser.value("window.bad ?? null"), json!(null));
    assert_eq!(browser.text(".question .said"), "<h1>Hi</h1>");
    assert_eq!(browser.text(".thoughts"), "Let me think about <b>it</b>");
    let count = |names: &str| {
        browser.value(&format!("document.querySelectorAll('.answer .said :is({names})').length"))
    };
    assert_eq!(count("img, script, i, u, td td, q, iframe"), 0);
    let of = |name: &str| browser.text(&format!(".answer .said {name}"));
    assert_eq!(of("p"), "<img src=x onerror=\"window.bad=1\"><script>window.bad=1</script>");
    assert_eq!(of("h1"), "A <i>title</i>");
    assert_eq!(of("strong"), "bold <u>item</u>");
    assert_eq!(of("li code"), "<s>");
    assert_eq!(of("ol li"), "deeper");
    assert_eq!(of("td"), "<td>");
    assert_eq!(of("pre"), "<script>window.bad=1</script>");
    assert_eq!(of("blockquote"), "quoted <q>");
    assert_eq!(count("em"), 0);
    assert_eq!(browser.text(".answer .said > p:last-child"), "5 * 3 * 2 = 30, a_b_c");
    let links = browser.value("[...document.querySelectorAll('.answer .said a')].map(a => a.href)");
    assert_eq!(links, json!(["https://example.com/a?b=c", "https://example.com/x.png"]));
    assert!(of("p:has(a)").contains("[bad](javascript:window.bad=1)"));
    // The policy alone would stop it too.
    let parsed = browser.value(
        "(() => { try { document.body.insertAdjacentHTML('beforeend', '<p>'); return true } catch { return false } })()",
    );
    assert_eq!(parsed, false);
    browser.resize(390, 800);
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), true);
    browser.photograph("phone");
    browser.run("document.documentElement.dataset.theme = 'dark'");
    browser.photograph("dark");
}

#[test]
fn an_answer_is_stopped_on_the_server_too() {
    let said = ids("Some years ago, never mind how long precisely. ");
    let mut scripted = Scripted::new(move |_| Script::new(said.clone(), Then::Again));
    scripted.step_time = Duration::from_millis(5);
    let server = TestServer::of(scripted);
    let Some(browser) = Browser::open(&server) else { return };
    // Neither has an end, so that only the button and the key end them.
    for stop in 0..2 {
        browser.run("document.querySelector('#quick-effort').value = 'none'");
        browser.run("document.querySelector('#quick-effort').dispatchEvent(new Event('input'))");
        browser.write("#question", &format!("Tell me{ENTER}"));
        browser
            .until("document.querySelector('.answer:last-child .said')?.textContent.length > 50");
        match stop {
            0 => browser.click("#stop"),
            _ => browser.write("#question", ESCAPE),
        }
        browser.until(OVER);
        server.wait_until_free(1024);
        assert_eq!(browser.value("document.querySelectorAll('.problem.note').length"), stop + 1);
    }
    assert_eq!(server.seen.lock().unwrap().cancelled.len(), 2);
    // What was said is kept and sent back.
    let last = server.seen.lock().unwrap().jobs[1].prompt.len();
    assert!(last > server.seen.lock().unwrap().jobs[0].prompt.len() + 10);
}

#[test]
fn a_key_is_asked_for_and_settings_reach_the_server() {
    let server =
        TestServer::with(saying("Aye."), |options| options.api_keys = ApiKeys::new(["hush"]));
    let Some(browser) = Browser::open(&server) else { return };
    browser.until("document.querySelector('#settings').open");
    assert_eq!(browser.text("#notice"), "This server asks for an API key.");
    browser.photograph("key");
    browser.write("[name=key]", "wrong");
    browser.write("[name=key]", ENTER);
    browser.until("document.querySelector('#notice').textContent.includes('does not know')");
    // The wrong one is selected.
    browser.write("[name=key]", "hush");
    for (field, value) in [
        ("[name=system]", "Speak as a captain."),
        ("[name=temperature]", "0.25"),
        ("[name=topP]", "0.5"),
        ("[name=maxTokens]", "7"),
    ] {
        browser.write(field, value);
    }
    browser.run("document.querySelector('#settings [name=effort]').value = 'none'");
    browser.run("document.querySelector('#settings form').dispatchEvent(new Event('input'))");
    browser.write("[name=maxTokens]", ENTER);
    browser.until("document.querySelector('#model').textContent === 'demo'");
    drop_picture(&browser);
    browser.until("document.querySelectorAll('#pictures img').length === 1");
    browser.photograph("picture");
    browser.write("#question", "Line one\u{E008}\u{E007}\u{E000}line two");
    browser.write("#question", ENTER);
    browser.until(OVER);
    assert_eq!(browser.text(".answer .said"), "Aye.");
    assert_eq!(browser.text(".question .said"), "Line one\nline two");
    {
        let seen = server.seen.lock().unwrap();
        let job = seen.jobs.last().unwrap();
        assert_eq!((job.sampling.temperature, job.sampling.top_p, job.max_tokens), (0.25, 0.5, 7));
        assert_eq!(job.pictures.len(), 1);
    }
    // The key is kept for the tab and nowhere else.
    assert!(!browser.value("JSON.stringify(localStorage)").to_string().contains("hush"));
    browser.reload();
    browser.until("document.querySelector('#model').textContent === 'demo'");
    assert_eq!(browser.value("document.querySelectorAll('.question .shown img').length"), 1);
    let kept = "['system', 'temperature', 'topP', 'maxTokens', 'effort'].map(n => document.querySelector(`#settings [name=${n}]`).value)";
    assert_eq!(browser.value(kept), json!(["Speak as a captain.", "0.25", "0.5", "7", "none"]));
}

/// Drops a picture and something that is none.
fn drop_picture(browser: &Browser) {
    let picture = STANDARD.encode(include_bytes!("../../../tests/goldens/picture.png"));
    browser.run(&format!(
        "const bytes = Uint8Array.from(atob('{picture}'), c => c.charCodeAt(0));\
         const files = new DataTransfer();\
         files.items.add(new File([bytes], 'picture.png', {{ type: 'image/png' }}));\
         files.items.add(new File(['text'], 'notes.txt', {{ type: 'text/plain' }}));\
         for (const kind of ['dragover', 'drop'])\
           document.body.dispatchEvent(new DragEvent(kind, {{ dataTransfer: files, bubbles: true, cancelable: true }}));",
    ));
    browser.until("document.querySelector('#notice').textContent.includes('notes.txt')");
}
