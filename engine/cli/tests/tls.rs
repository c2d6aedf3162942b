//! `tandem serve` over TLS, and what it warns of.

mod tandem;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tandem::tandem;
use tempfile::TempDir;

/// Certificates and keys of a test.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a certificate of this machine that is valid to the end of a year, and its key.
    fn write(&self, name: &str, last_year: i32) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 12, 31);
        let cert = params.self_signed(&key).unwrap();
        let files = ["cert", "key"].map(|kind| self.path(&format!("{name}.{kind}.pem")));
        fs::write(&files[0], cert.pem()).unwrap();
        fs::write(&files[1], key.serialize_pem()).unwrap();
        files.map(|path| path.to_str().unwrap().to_owned())
    }
}

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
    errors: BufReader<ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(["serve", "--port", "0", "--served-model-name", "whale", "--log-format", "json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let address = line.trim().strip_prefix("serving whale on ").unwrap().to_owned();
        Self { child, address, errors }
    }

    /// Reads what it says on standard error until a line has this.
    fn says(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.errors.read_line(&mut line).unwrap() > 0, "it never said {part}");
            if line.contains(part) {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        let kill =
            Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }
}

/// A load of one request on it, with this authority.
fn load(server: &Server, authority: &str) -> tandem::Finished {
    let how =
        ["--max-concurrency", "1", "--num-prompts", "1", "--input-len", "2", "--output-len", "2"];
    tandem(
        &[&["bench", "serve", "--url", &server.address, "--ca-cert", authority], &how[..]].concat(),
    )
}

#[test]
fn connections_are_encrypted_with_a_certificate_that_may_be_renewed() {
    let files = Files::new();
    let [cert, key] = files.write("first", 2090);
    let mut server = Server::start(&["--tls-cert", &cert, "--tls-key", &key]);
    assert!(server.address.starts_with("https://"), "{}", server.address);
    load(&server, &cert).ok();
    // Nobody else is trusted, and plain HTTP is no way in.
    let [other, other_key] = files.write("other", 2090);
    load(&server, &other).refused(2, &["--url"]);
    let plain = server.address.replace("https", "http");
    tandem(&["bench", "serve", "--url", &plain, "--max-concurrency", "1"]).refused(2, &["--url"]);
    fs::copy(&other, &cert).unwrap();
    server.signal("-HUP");
    server.says("the certificate from before stays");
    load(&server, Path::new(&files.write("third", 2090)[0]).to_str().unwrap())
        .refused(2, &["--url"]);
    fs::copy(&other_key, &key).unwrap();
    server.signal("-HUP");
    server.says("were read again");
    load(&server, &other).ok();
    server.signal("-TERM");
    let start = Instant::now();
    while server.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut rest = String::new();
    server.errors.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"path\":\"/v1/chat/completions\""), "{rest}");
}

#[test]
fn wrong_files_are_known_before_loading() {
    let files = Files::new();
    let ([cert, key], [_, other]) = (files.write("one", 2090), files.write("two", 2090));
    let serve = |cert: &str, key: &str| {
        tandem(&["serve", "--port", "0", "--tls-cert", cert, "--tls-key", key])
    };
    serve(&cert, &other).refused(2, &[&other, "is not the key", &cert]);
    serve(&key, &cert).refused(2, &[&key, "no certificate"]);
    serve(&cert, &cert).refused(2, &[&cert, "no private key"]);
    serve("/no/such", &key).refused(2, &["/no/such"]);
    tandem(&["serve", "--tls-cert", &cert]).refused(2, &["--tls-key"]);
    tandem(&["serve", "--log-level", "loud"]).refused(2, &["--log-level"]);
}

#[test]
fn what_may_have_been_forgotten_is_said() {
    let files = Files::new();
    let [cert, key] = files.write("old", 2021);
    let mut server = Server::start(&["--host", "0.0.0.0", "--tls-cert", &cert, "--tls-key", &key]);
    assert!(server.says("clients will refuse").contains("2021-12-31"));
    assert!(server.says("open to other machines").contains("--api-key"));
    let mut server = Server::start(&["--host", "0.0.0.0", "--api-key", "hush"]);
    let said = server.says("open to other machines");
    assert!(said.contains("--tls-cert") && !said.contains("without --api-key"), "{said}");
}
