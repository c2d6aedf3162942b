//! What the environment says.

use std::env;
use std::path::PathBuf;
use std::thread;

use tandem_gfxsim::Schedule;

use crate::board::Board;

/// What the environment says, read once.
pub(crate) struct Settings {
    pub(crate) boards: Vec<Board>,
    /// Launches take them in turn; at least one.
    pub(crate) schedules: Vec<Schedule>,
    /// Memory of each board.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) report: Option<PathBuf>,
}

impl Settings {
    /// From the process's environment. What is not understood leaves no boards.
    pub(crate) fn read() -> (Settings, Option<String>) {
        let report = env::var_os("TANDEM_SIM_REPORT").filter(|path| !path.is_empty());
        let variable = |name: &str| env::var(name).ok();
        let (settings, why) = match parse(variable) {
            Ok(settings) => (settings, None),
            Err(why) => (Settings::nothing(), Some(why)),
        };
        (Settings { report: report.map(PathBuf::from), ..settings }, why)
    }

    fn nothing() -> Settings {
        let schedules = vec![Schedule::eager()];
        Settings { boards: vec![], schedules, memory_bytes: None, report: None }
    }
}

fn parse(variable: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
    let mut settings = Settings::nothing();
    let devices = variable("TANDEM_SIM_DEVICES").unwrap_or_else(|| "MI300X".into());
    for word in words(&devices) {
        let board = Board::named(word).ok_or_else(|| {
            format!(
                "TANDEM_SIM_DEVICES: there is no `{word}`; name MI300X, MI325X, MI350X, MI355X, gfx942 or gfx950"
            )
        })?;
        settings.boards.push(board);
    }
    if let Some(schedules) = variable("TANDEM_SIM_SCHEDULE") {
        settings.schedules = words(&schedules).map(schedule).collect::<Result<_, _>>()?;
    } else {
        settings.schedules = Schedule::four().into();
    }
    if settings.schedules.is_empty() {
        return Err("TANDEM_SIM_SCHEDULE: names no schedule".into());
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    settings.schedules.iter_mut().for_each(|schedule| schedule.threads = threads);
    if let Some(size) = variable("TANDEM_SIM_MEMORY_MIB") {
        let mib: Option<u64> = size.trim().parse().ok().filter(|mib| *mib > 0);
        let bytes = mib.and_then(|mib| mib.checked_mul(1 << 20));
        settings.memory_bytes =
            Some(bytes.ok_or_else(|| format!("TANDEM_SIM_MEMORY_MIB: `{size}` is no size"))?);
    }
    Ok(settings)
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn schedule(word: &str) -> Result<Schedule, String> {
    let (word_of_order, caches) =
        word.strip_suffix("+caches").map_or((word, false), |rest| (rest, true));
    let (timing, seed) = word_of_order.split_once(':').unwrap_or((word_of_order, "0"));
    let wrong = || {
        format!(
            "TANDEM_SIM_SCHEDULE: there is no `{word}`; name eager or lazy, as in `lazy:11+caches`"
        )
    };
    let seed = seed.parse().map_err(|_| wrong())?;
    match timing {
        "eager" => Ok(Schedule { seed, caches, ..Schedule::eager() }),
        "lazy" => Ok(Schedule { caches, ..Schedule::lazy(seed) }),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &[(&str, &str)]) -> Result<Settings, String> {
        parse(|name| {
            given.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// The schedule with as many threads as there are processors.
    fn spread(schedule: Schedule) -> Schedule {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Schedule { threads, ..schedule }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let settings = parsed(&[]).expect("defaults");
        assert_eq!(settings.boards.len(), 1);
        assert_eq!(settings.schedules, Schedule::four().map(spread));
        assert_eq!(settings.memory_bytes, None);
    }

    #[test]
    fn what_is_said_holds() {
        let settings = parsed(&[
            ("TANDEM_SIM_DEVICES", "gfx950, MI325X"),
            ("TANDEM_SIM_SCHEDULE", "lazy:3+caches,eager"),
            ("TANDEM_SIM_MEMORY_MIB", "12"),
        ])
        .expect("settings");
        let names: Vec<_> = settings.boards.iter().map(|board| board.name).collect();
        assert_eq!(names, ["simulated AMD Instinct MI355X", "simulated AMD Instinct MI325X"]);
        assert_eq!(
            settings.schedules,
            [Schedule::lazy(3).with_caches(), Schedule::eager()].map(spread)
        );
        assert_eq!(settings.memory_bytes, Some(12 << 20));
        assert!(parsed(&[("TANDEM_SIM_DEVICES", "")]).expect("none").boards.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (name, value) in [
            ("TANDEM_SIM_DEVICES", "gfx942,H100"),
            ("TANDEM_SIM_SCHEDULE", "late"),
            ("TANDEM_SIM_SCHEDULE", "lazy:x"),
            ("TANDEM_SIM_SCHEDULE", "lazy+cache"),
            ("TANDEM_SIM_SCHEDULE", ","),
            ("TANDEM_SIM_MEMORY_MIB", "0"),
            ("TANDEM_SIM_MEMORY_MIB", "lots"),
        ] {
            let why = parsed(&[(name, value)]).err().expect("refused");
            assert!(why.starts_with(name) && why.lines().count() == 1, "{why}");
        }
    }
}
