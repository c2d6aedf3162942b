//! The files of `deploy/`, as far as they can be held without a container engine: no image is built here.

mod tandem;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tandem::{Finished, finish, tandem};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a `Containerfile` says, instruction by instruction.
struct Containerfile(Vec<(String, String)>);

impl Containerfile {
    /// Reads the file: comments left out, continued lines joined.
    fn read() -> Self {
        let text = read("deploy/Containerfile");
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
        let lines = joined.lines().filter(|line| !line.trim().is_empty());
        let split = |line: &str| {
            let (name, rest) = line.split_once(' ').expect("an instruction says what to do");
            (name.to_owned(), rest.trim().to_owned())
        };
        Self(lines.map(split).collect())
    }

    /// All that instructions of this name say.
    fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(own, _)| own == name).map(|(_, rest)| rest.as_str()).collect()
    }

    /// What the only one says.
    fn one(&self, name: &str) -> &str {
        let [one] = self.all(name)[..] else { panic!("{name} is not there once") };
        one
    }
}

/// Words of an instruction in its form of JSON.
fn words(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// Runs `tandem serve` with what would follow the program's name; the options that hold.
fn held(words: &[String], more: &[&str]) -> String {
    let words = words.iter().map(String::as_str).chain(more.iter().copied());
    let arguments: Vec<_> = words.chain(["--print-config"]).collect();
    tandem(&arguments).ok()
}

#[track_caller]
fn assert_holds(held: &str, option: &str) {
    let holds = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{option} "));
    assert!(held.lines().any(holds), "{option} is not in\n{held}");
}

/// What a container starts is what the binary understands, on the port that it shows, and as nobody.
#[test]
fn a_container_starts_the_server() {
    let file = Containerfile::read();
    let entry = words(file.one("ENTRYPOINT"));
    let (program, arguments) = entry.split_first().unwrap();
    let held = held(arguments, &["--model", "/model", "--api-key", "KEY"]);
    assert_holds(&held, "host = \"0.0.0.0\"");
    assert_holds(&held, &format!("port = {}", file.one("EXPOSE")));
    let user = file.one("USER").split(':').next().unwrap();
    assert!(user.parse::<u32>().expect("a number, as no user is made") > 0);
    let copies = file.all("COPY");
    let installed = copies.iter().find_map(|copy| copy.strip_prefix("--from=build ")).unwrap();
    let (built, at) = installed.split_once(' ').unwrap();
    assert_eq!((built, at), ("/out/bin/tandem", program.as_str()));
    assert!(file.one("RUN").ends_with("cargo install --locked --path engine/cli --root /out"));
}

/// The image is built of the repository, without what is made here, by a compiler that is new enough.
#[test]
fn a_container_is_built_of_what_there_is() {
    let file = Containerfile::read();
    let stages = file.all("FROM");
    let build = stages[0].strip_suffix(" AS build").unwrap();
    let compiler = build.split_once("rust:").and_then(|(_, tag)| tag.split_once('-')).unwrap().0;
    assert_eq!(compiler, env!("CARGO_PKG_RUST_VERSION"), "the compiler that the sources ask for");
    // The standard library and the C library of one are those of the other.
    let release =
        |image: &str| image.rsplit([':', '-']).find(|part| *part != "slim").map(str::to_owned);
    assert_eq!(release(build), release(stages[1]));
    for copy in file.all("COPY").iter().filter(|copy| !copy.starts_with("--from=")) {
        let source = copy.split(' ').next().unwrap();
        assert!(root().join(source).exists(), "{source}");
    }
    let ignored = read("deploy/Containerfile.dockerignore");
    for path in ignored.lines().filter(|line| !line.is_empty()) {
        assert!(!path.contains(['*', '?', '[', '!']), "{path} is no path");
        if path == ".git" {
            continue;
        }
        let listed =
            Command::new("git").args(["ls-files", "--", path]).current_dir(root()).output();
        let listed = listed.expect("git lists the sources");
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        assert!(listed.stdout.is_empty(), "{path} is among the sources");
    }
    assert!(ignored.lines().any(|line| line == "target"), "builds of here are no sources");
}

/// A server that ends with the test, and its port.
struct Server(Child, String);

impl Server {
    fn start() -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(["serve", "--port", "0", "--api-key", "hush"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(server, line.trim().rsplit(':').next().unwrap().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The command that judges a container's health, run here: of a server that is well and of none.
#[test]
fn a_container_knows_its_health() {
    let file = Containerfile::read();
    let (_, command) = file.one("HEALTHCHECK").split_once("CMD ").unwrap();
    let words = words(command);
    let judge = |port: &str| -> Finished {
        finish(Command::new(&words[0]).args(&words[1..]).env("TANDEM_PORT", port))
    };
    assert!(command.contains(&format!(":-{}}}", file.one("EXPOSE"))), "{command}");
    let server = Server::start();
    assert_eq!(judge(&server.1).code, 0, "{}", judge(&server.1).errors);
    let port = server.1.clone();
    drop(server);
    assert_ne!(judge(&port).code, 0, "nobody is there");
}

#[test]
fn the_file_of_options_is_one() {
    let path = root().join("deploy/tandem.toml");
    let serve = ["serve", "--config", path.to_str().unwrap()].map(str::to_owned);
    let held = held(&serve, &[]);
    for option in ["max-num-seqs = 64", "host = \"0.0.0.0\"", "drain-timeout = 60"] {
        assert_holds(&held, option);
    }
}

#[test]
fn the_unit_starts_the_server_and_waits_for_its_end() {
    let unit = read("deploy/tandem.service");
    let value = |key: &str| -> &str {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}"))
    };
    let (program, arguments) = value("ExecStart").split_once(' ').unwrap();
    let options = root().join("deploy/tandem.toml").to_str().unwrap().to_owned();
    let arguments = arguments.replace("/etc/tandem/tandem.toml", &options);
    let words: Vec<_> = arguments.split(' ').map(str::to_owned).collect();
    assert!(words.contains(&options), "{arguments}");
    let held = held(&words, &[]);
    let drain = held.lines().find_map(|line| line.strip_prefix("drain-timeout = ")).unwrap();
    let drain: u64 = drain.split(' ').next().unwrap().parse().unwrap();
    assert!(value("TimeoutStopSec").parse::<u64>().unwrap() > drain);
    // The program of the container and of the unit is at one place.
    assert!(Containerfile::read().one("ENTRYPOINT").contains(program));
    let has_systemd = Command::new("systemd-analyze").arg("--version").output().is_ok();
    if !has_systemd {
        println!("SKIPPED: no systemd-analyze; install systemd");
        return;
    }
    // What it starts is not installed here.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tandem.service");
    fs::write(&path, unit.replace(program, env!("CARGO_BIN_EXE_tandem"))).unwrap();
    let verified = finish(Command::new("systemd-analyze").arg("verify").arg(&path));
    assert_eq!((verified.code, verified.errors.as_str()), (0, ""), "{}", verified.output);
}
