//! A headless Chromium that a test steers, step by step.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use fantoccini::error::CmdError;
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::server::{PATIENCE, TestServer};

/// Its driver; the browser ends with it.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// A window.
pub struct Browser {
    client: Option<Client>,
    runtime: Runtime,
    _driver: Driver,
}

impl Browser {
    /// A window that shows the page of a server; `None`, having said so, where there is no browser.
    pub fn open(server: &TestServer) -> Option<Self> {
        let Some((driver, port)) = start() else {
            println!("SKIPPED page: no chromedriver; install chromium and chromium-driver");
            return None;
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = json!({ "goog:chromeOptions": { "args": [
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1000,800",
        ]}});
        let Value::Object(options) = options else { unreachable!("an object was written") };
        let options: Capabilities = options.into_iter().collect();
        let client = runtime.block_on(async {
            let mut builder =
                ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
            builder
                .capabilities(options)
                .connect(&format!("http://127.0.0.1:{port}"))
                .await
                .unwrap()
        });
        let browser = Self { client: Some(client), runtime, _driver: driver };
        browser.go_to(server);
        Some(browser)
    }

    /// Shows the page of a server, from anew.
    pub fn go_to(&self, server: &TestServer) {
        let address = format!("http://{}/", server.address);
        self.wait(self.client().goto(&address));
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("the window is open")
    }

    #[track_caller]
    fn wait<T>(&self, step: impl Future<Output = Result<T, CmdError>>) -> T {
        self.runtime.block_on(step).unwrap()
    }

    /// Types into a field.
    #[track_caller]
    pub fn write(&self, field: &str, text: &str) {
        let element = self.wait(self.client().find(Locator::Css(field)));
        self.wait(element.send_keys(text));
    }

    /// Clicks.
    #[track_caller]
    pub fn click(&self, on: &str) {
        let element = self.wait(self.client().find(Locator::Css(on)));
        self.wait(element.click());
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.wait(self.client().refresh());
    }

    /// Says yes to what the page asks.
    pub fn accept(&self) {
        self.wait(self.client().accept_alert());
    }

    /// Makes the window so large.
    pub fn resize(&self, width: u32, height: u32) {
        self.wait(self.client().set_window_size(width, height));
    }

    /// What a script of the tester returns, to which the page's policy does not apply.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.wait(self.client().execute(script, vec![]))
    }

    /// What an expression is.
    #[track_caller]
    pub fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}"))
    }

    /// The text of the one element, as written.
    #[track_caller]
    pub fn text(&self, element: &str) -> String {
        let text = self.value(&format!("document.querySelector({element:?})?.textContent"));
        text.as_str().unwrap_or_else(|| panic!("no {element}")).to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&self, expression: &str) {
        let start = Instant::now();
        while self.value(expression) != true {
            let page = self.value("document.body.innerText");
            assert!(start.elapsed() < PATIENCE, "never: {expression}; the page says {page}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Keeps a picture of the window in the folder of `TANDEM_SCREENSHOTS`, for whoever looks at it.
    pub fn photograph(&self, name: &str) {
        if let Some(folder) = std::env::var_os("TANDEM_SCREENSHOTS") {
            let bytes = self.wait(self.client().screenshot());
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), bytes)
                .unwrap();
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let _closed = self.runtime.block_on(client.close());
        }
    }
}

/// A driver on a port of its own.
fn start() -> Option<(Driver, u16)> {
    let child = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().ok()?;
    let mut driver = Driver(child);
    let lines = BufReader::new(driver.0.stdout.take().unwrap()).lines();
    for line in lines {
        let line = line.unwrap();
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            return Some((driver, port.trim_end_matches('.').parse().unwrap()));
        }
    }
    panic!("chromedriver says no port");
}
