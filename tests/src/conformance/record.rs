//! What a run leaves for `cargo xtask matrix`: one line of JSON for every row of every device.

use super::{
    arguments::Settings,
    kind::Kind,
    lane::Lane,
    summary::{Counts, Summary, Tested},
};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// When and from what the run was made.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// When it began.
    pub at: SystemTime,
    /// The commit that the program was built from, if its builder saw to it that nothing else went in.
    pub commit: Option<&'static str>,
}

/// The lines, each an object.
pub fn lines(
    summary: &Summary,
    lanes: &[Lane],
    settings: &Settings,
    origin: Origin,
) -> Vec<String> {
    let line = |(tested, kinds): (&Tested, &std::collections::BTreeMap<Kind, Counts>)| {
        let lane = lanes.iter().find(|lane| lane.name == tested.lane)?;
        let (board, arch) = (&lane.info.board, &lane.info.arch);
        let counts = |kind: &Kind| {
            let Counts { held, refused, failed } = kinds.get(kind).copied().unwrap_or_default();
            let counts = json!({ "held": held, "refused": refused, "failed": failed });
            (kind.name().to_string(), counts)
        };
        let kinds: Map<String, Value> = Kind::ALL.iter().map(counts).collect();
        Some(
            json!({
                "date": date(origin.at),
                "commit": origin.commit,
                "driver": lane.provider.driver(),
                "device": tested.lane,
                "board": board,
                "arch": arch,
                "operator": tested.op,
                "row": tested.row,
                "rank": format!("{:?}", tested.rank).to_lowercase(),
                "bits": tested.bits,
                "image": lane.provider.image(tested.op, tested.row, arch),
                "seed": settings.seed,
                "drawn": settings.cases,
                "cases": kinds,
            })
            .to_string(),
        )
    };
    summary.rows().filter_map(line).collect()
}

/// The day in UTC, as `2026-11-30`.
fn date(at: SystemTime) -> String {
    // A clock before 1970 is wrong anyway.
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut day, mut year) = (seconds / 86_400, 1970);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tandem_hal::Rank;

    #[test]
    fn days_have_their_dates() {
        let of = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(of(0), "1970-01-01");
        assert_eq!(of(951_782_399), "2000-02-28");
        assert_eq!(of(951_868_799), "2000-02-29");
        assert_eq!(of(4_107_542_400), "2100-03-01");
        assert_eq!(of(1_796_019_127), "2026-11-30");
        assert_eq!(of(1_798_761_599), "2026-12-31");
    }

    #[test]
    fn a_line_says_what_ran_where_and_what_did_not() {
        let lane = Lane::reference().remove(0);
        let tested = Tested {
            lane: lane.name.clone(),
            op: "norm.rms",
            row: "portable",
            rank: Rank::Portable,
            bits: "seq",
        };
        let elsewhere = Tested { lane: "cuda:7".into(), ..tested.clone() };
        let mut summary = Summary::default();
        let counts = Counts { held: 3, failed: 1, refused: 2 };
        summary.add(tested.clone(), Kind::Drawn, counts);
        summary.add(tested, Kind::Drawn, counts);
        summary.add(elsewhere, Kind::Drawn, counts);
        let settings = Settings { seed: 5, cases: 6, edges: None, case: None, record: None };
        let origin = Origin { at: UNIX_EPOCH, commit: Some("abc") };
        let lines = lines(&summary, &[lane], &settings, origin);
        assert_eq!(lines.len(), 1, "only lanes of this run");
        let line: Value = serde_json::from_str(&lines[0]).expect("one object");
        assert_eq!(line["cases"]["prop"], json!({ "held": 6, "refused": 4, "failed": 2 }));
        assert_eq!(line["cases"]["large"], json!({ "held": 0, "refused": 0, "failed": 0 }));
        assert_eq!((&line["commit"], &line["driver"]), (&json!("abc"), &Value::Null));
        assert_eq!((&line["rank"], &line["date"]), (&json!("portable"), &json!("1970-01-01")));
    }
}
