//! Options from elsewhere than the command line: the environment, and a file of TOML. One definition serves all three: the
//! option `--max-num-seqs` is `TANDEM_MAX_NUM_SEQS` in the environment and `max-num-seqs` in the file. The command line
//! goes before the environment, that before the file, and all before what an option has by itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

/// Options that are not settings, but say what to do once.
const NO_SETTINGS: [&str; 4] = ["config", "print-config", "help", "version"];
/// Options whose values are not shown.
const SECRETS: [&str; 2] = ["api-key", "client-key"];

/// Values of one option as words of the command line, and who gave them.
#[derive(Debug)]
struct Setting {
    values: Vec<String>,
    origin: String,
}

impl Setting {
    /// Whether it says of a flag that it is not set.
    fn is_unset(&self, arg: &Arg) -> bool {
        matches!(arg.get_action(), ArgAction::SetTrue) && self.values == ["false"]
    }
}

/// Options of one command, by their long names.
#[derive(Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, Setting>);

impl Settings {
    /// What the environment and the file that `--config` names say to the command that was given. Of options that exclude
    /// each other those from the higher place hold.
    ///
    /// # Errors
    /// In one line: a file that cannot be read, an option that no command has, a value that no option takes, options of
    /// one place that exclude each other.
    pub(crate) fn read(command: &Command, matches: &ArgMatches) -> Result<Self, String> {
        let Some((own, given)) = given(command, matches) else { return Ok(Self::default()) };
        let options: Vec<&Arg> = options(own).chain(options(command)).collect();
        let explicit = |arg: &&Arg| is_given(given, arg);
        let mut settled: Vec<&Arg> = options.iter().copied().filter(explicit).collect();
        let mut settings = Self::default();
        let from_file = match given.get_one::<String>("config") {
            Some(path) => file(path, command)?,
            None => vec![],
        };
        for place in [environment(&options)?, from_file] {
            let mut fresh: Vec<&Arg> = vec![];
            for (long, setting) in place {
                let Some(&arg) = options.iter().find(|arg| answers_to(arg, &long)) else {
                    continue;
                };
                let excludes = |other: &&Arg| are_exclusive(own, arg, other);
                if let Some(other) = fresh.iter().find(|other| excludes(other)) {
                    let (this, other, origin) = (long_of(arg), long_of(other), setting.origin);
                    return Err(format!("{origin}: {this} excludes {other}; leave out one"));
                }
                let is_settled = |other: &&Arg| other.get_id() == arg.get_id() || excludes(other);
                if settled.iter().any(is_settled) || settings.0.contains_key(&long_of(arg)) {
                    continue;
                }
                // A flag that is not set excludes nothing.
                if !setting.is_unset(arg) {
                    fresh.push(arg);
                }
                settings.0.insert(long_of(arg), setting);
            }
            settled.extend(fresh);
        }
        Ok(settings)
    }

    /// The option with its setting in place of what it has by itself.
    pub(crate) fn apply(&self, arg: Arg) -> Arg {
        match arg.get_long().and_then(|long| self.0.get(long)) {
            Some(setting) => arg.default_values(setting.values.clone()),
            None => arg,
        }
    }

    /// Who gave this option this value, if it was not the command line.
    pub(crate) fn origin(&self, long: &str, value: &str) -> Option<&str> {
        let setting = self.0.get(long)?;
        setting.values.iter().any(|own| own == value).then_some(&setting.origin)
    }

    /// Every option of the command that has a value, as a file of TOML, with where it is from; those that have it by
    /// themselves as comments.
    pub(crate) fn print(&self, command: &Command, matches: &ArgMatches) -> String {
        let mut text = String::new();
        let Some((own, given)) = given(command, matches) else { return text };
        for arg in options(own).chain(options(command)) {
            let long = long_of(arg);
            let Some(values) = given.get_raw(arg.get_id().as_str()) else { continue };
            let values: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
            let (begin, from) = match self.0.get(&long) {
                _ if is_given(given, arg) => ("", "the command line"),
                Some(setting) => ("", setting.origin.as_str()),
                None => ("# ", "by itself"),
            };
            let line = match SECRETS.contains(&long.as_str()) {
                true => format!("# {long} is set and not shown"),
                false => format!("{begin}{long} = {}", as_toml(arg, values)),
            };
            writeln!(text, "{line:<48} # {from}").expect("text takes text");
        }
        text
    }
}

/// The command that was given, within another or not, and its options.
fn given<'a>(
    command: &'a Command,
    matches: &'a ArgMatches,
) -> Option<(&'a Command, &'a ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    let own = command.find_subcommand(name).expect("matches are of the command");
    given(own, matches).or(Some((own, matches)))
}

/// Every command, those within others too.
fn commands(command: &Command) -> Vec<&Command> {
    let inner = command.get_subcommands().flat_map(commands);
    [command].into_iter().chain(inner).collect()
}

/// The options of a command that have a long name and are settings.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_setting = |arg: &&Arg| arg.get_long().is_some_and(|long| !NO_SETTINGS.contains(&long));
    command.get_arguments().filter(is_setting)
}

fn long_of(arg: &Arg) -> String {
    arg.get_long().unwrap_or_default().to_owned()
}

fn answers_to(arg: &Arg, long: &str) -> bool {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long() == Some(long) || aliases.contains(&long)
}

fn is_given(matches: &ArgMatches, arg: &Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

fn are_exclusive(command: &Command, one: &Arg, other: &Arg) -> bool {
    let excludes = |one: &Arg, other: &Arg| {
        let is_own = command.get_arguments().any(|arg| arg.get_id() == one.get_id());
        is_own
            && command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
    };
    excludes(one, other) || excludes(other, one)
}

/// What the environment sets of these options.
fn environment(options: &[&Arg]) -> Result<Vec<(String, Setting)>, String> {
    let mut settings = vec![];
    for arg in options {
        let long = long_of(arg);
        let name = format!("TANDEM_{}", long.replace('-', "_").to_uppercase());
        let Some(value) = std::env::var_os(&name) else { continue };
        let value = value.into_string().map_err(|_| format!("{name}: not UTF-8"))?;
        let value = match (arg.get_action(), value.as_str()) {
            (ArgAction::SetTrue, "1" | "yes" | "on") => "true".to_owned(),
            (ArgAction::SetTrue, "0" | "no" | "off" | "") => "false".to_owned(),
            _ => value,
        };
        settings.push((long, Setting { values: vec![value], origin: name }));
    }
    Ok(settings)
}

/// What a file sets, whichever command has the options.
fn file(path: &str, command: &Command) -> Result<Vec<(String, Setting)>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        format!("{path}, line {line}: {}", error.message())
    })?;
    let commands = commands(command);
    let mut settings = vec![];
    for (key, value) in table {
        let long = key.replace('_', "-");
        if !commands.iter().flat_map(|command| options(command)).any(|arg| answers_to(arg, &long)) {
            return Err(format!("{path}: no command has an option --{long}; see 'tandem --help'"));
        }
        let values =
            words(value).ok_or_else(|| format!("{path}: {key} has no value of an option"))?;
        settings.push((long, Setting { values, origin: path.to_owned() }));
    }
    Ok(settings)
}

/// A value as words of the command line: a list is several, a table is one of JSON.
fn words(value: Value) -> Option<Vec<String>> {
    Some(match value {
        Value::String(text) => vec![text],
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => vec![value.to_string()],
        Value::Table(table) => vec![serde_json::to_string(&table).ok()?],
        Value::Array(values) => {
            let words: Option<Vec<_>> = values.into_iter().map(words).collect();
            words?.concat()
        }
        Value::Datetime(_) => return None,
    })
}

fn as_toml(arg: &Arg, values: Vec<String>) -> Value {
    let mut values = values.into_iter().map(|value| match value.parse::<Value>() {
        Ok(number @ (Value::Integer(_) | Value::Float(_) | Value::Boolean(_))) => number,
        _ => Value::String(value),
    });
    match arg.get_action() {
        ArgAction::Append => Value::Array(values.collect()),
        _ => values.next().unwrap_or(Value::Boolean(true)),
    }
}
