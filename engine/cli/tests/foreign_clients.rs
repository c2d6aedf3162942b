//! The official Python clients of both protocols, unchanged, against `tandem serve`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where `cargo xtask fetch clients` puts a Python that has both clients.
const PYTHON: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/fetched/clients/bin/python");

/// Ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command; what it said when it failed.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{command:?}: {}{}", text(&output.stdout), text(&output.stderr))),
    }
}

#[test]
fn the_official_clients_run_a_session() {
    if !Path::new(PYTHON).exists() {
        println!("SKIPPED clients: no {PYTHON}; run `cargo xtask fetch clients`");
        return;
    }
    let mut server = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(["serve", "--port", "0", "--served-model-name", "demo"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _server = Server(server);
    let address = line.trim().split_once(" on ").expect("the server tells its address").1;
    let folder = env!("CARGO_MANIFEST_DIR");
    let said = run(Command::new(PYTHON)
        .arg(format!("{folder}/tests/foreign_clients.py"))
        .args([address, &format!("{folder}/../../tests/goldens/picture.png")]));
    let said = said.unwrap_or_else(|problem| panic!("{problem}"));
    for client in ["openai", "anthropic"] {
        assert!(said.contains(client) && said.contains("ok"), "{said}");
    }
}
