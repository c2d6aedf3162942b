//! Runs as a page that stands alone: a table and plots.

use std::fmt::Write;

use super::pareto::Point;
use super::summary::Summary;

/// Size of a plot, and the room around it.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 220.0;
const MARGIN: f64 = 50.0;

/// One line of a plot, and its figure of each run.
type Line<'a> = (&'a str, &'a str, fn(&Summary) -> f64);

/// The page of runs, each with the label of its load and that load as a number, and the point of each
/// if there are any.
pub(super) fn page(
    title: &str,
    runs: &[(String, f64, Summary)],
    points: &[Option<Point>],
) -> String {
    let mut text =
        String::from("<!doctype html><meta charset=\"utf-8\"><title>Load</title><style>");
    text += "body{font:15px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:right}";
    text += "th{border-bottom:1px solid #888}svg{margin-right:2em}</style>";
    write!(text, "<h1>{}</h1><table><tr>", escaped(title)).expect("text takes text");
    for head in [
        "load",
        "answered",
        "failed",
        "requests/s",
        "goodput/s",
        "tokens/s",
        "TTFT p50",
        "p99",
        "TPOT p50",
        "p99",
        "ITL p99",
        "E2E p50",
        "p99",
    ] {
        text += &format!("<th>{head}");
    }
    for (label, _, s) in runs {
        text += &format!("<tr><td>{}<td>{}<td>{}", escaped(label), s.completed, s.failed);
        for rate in [s.request_rate(), s.goodput(), s.output_rate()] {
            text += &format!("<td>{rate:.2}");
        }
        let times = [(&s.ttft, true), (&s.tpot, true), (&s.itl, false), (&s.e2e, true)];
        for (times, with_median) in times {
            if with_median {
                text += &format!("<td>{:.1} ms", times.at(0.5) * 1e3);
            }
            text += &format!("<td>{:.1} ms", times.at(0.99) * 1e3);
        }
    }
    text += "</table>";
    let plots: [(&str, &[Line<'_>]); 3] = [
        ("tokens a second", &[("output", "#0a6", Summary::output_rate)]),
        (
            "time to first token, ms",
            &[
                ("median", "#06c", |s| s.ttft.at(0.5) * 1e3),
                ("p99", "#c30", |s| s.ttft.at(0.99) * 1e3),
            ],
        ),
        (
            "time per token, ms",
            &[
                ("median", "#06c", |s| s.tpot.at(0.5) * 1e3),
                ("p99", "#c30", |s| s.tpot.at(0.99) * 1e3),
            ],
        ),
    ];
    plots.iter().for_each(|(name, lines)| text += &plot(name, lines, runs));
    if !points.is_empty() {
        text += &choices(runs, points);
    }
    text
}

/// Runs by the speed that a user sees, the fastest first; those that no other beats in bold.
fn choices(runs: &[(String, f64, Summary)], points: &[Option<Point>]) -> String {
    let mut rows: Vec<_> = runs
        .iter()
        .zip(points)
        .filter_map(|((label, ..), point)| Some((label, (*point)?)))
        .collect();
    rows.sort_by(|(_, one), (_, other)| other.per_user.total_cmp(&one.per_user));
    let mut text =
        "<h2>Throughput of a GPU against the speed of a user</h2><p>In bold: no other run is \
                    better in one and as good in the other.<table><tr><th>load<th>tokens/s per GPU\
                    <th>tokens/s per user"
            .to_owned();
    for (label, Point { per_gpu, per_user, is_best }) in rows {
        let weight = if is_best { " style=\"font-weight:bold\"" } else { "" };
        text += &format!("<tr{weight}><td>{}<td>{per_gpu:.2}<td>{per_user:.2}", escaped(label));
    }
    text + "</table>"
}

/// Figures over load, from zero.
fn plot(name: &str, lines: &[Line<'_>], runs: &[(String, f64, Summary)]) -> String {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max).max(1e-9);
    let widest = most(&mut runs.iter().map(|(_, load, _)| *load));
    let highest =
        most(&mut lines.iter().flat_map(|(_, _, f)| runs.iter().map(move |(_, _, s)| f(s))));
    let x = |load: f64| MARGIN + load / widest * WIDTH;
    let y = |value: f64| MARGIN + (1.0 - value / highest) * HEIGHT;
    let (right, foot) = (x(widest), y(0.0));
    let mut text = format!(
        "<svg width=\"{}\" height=\"{}\"><text x=\"{MARGIN}\" y=\"20\">{name}</text>\
         <path d=\"M{MARGIN} {MARGIN}V{foot}H{right}\" fill=\"none\" stroke=\"#888\"/>\
         <text x=\"5\" y=\"{MARGIN}\">{highest:.0}</text>\
         <text x=\"{right}\" y=\"{}\">{widest}</text>",
        WIDTH + 2.0 * MARGIN,
        HEIGHT + 2.0 * MARGIN,
        foot + 20.0
    );
    for (i, (label, colour, figure)) in lines.iter().enumerate() {
        let points: Vec<_> = runs
            .iter()
            .map(|(_, load, s)| format!("{:.1},{:.1}", x(*load), y(figure(s))))
            .collect();
        text += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\
             <text x=\"{}\" y=\"20\" fill=\"{colour}\">{label}</text>",
            points.join(" "),
            250 + 80 * i
        );
    }
    text + "</svg>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::summary::Promise;
    use super::super::timeline::Timeline;
    use super::*;

    #[test]
    fn a_page_has_a_row_for_each_run_and_no_markup_of_its_names() {
        let timeline =
            Timeline { pieces: vec![0.5], end: 1.0, output_tokens: 10, ..Timeline::default() };
        let summary = Summary::new(&[timeline], &Promise::default());
        let runs =
            [("1 at once".to_owned(), 1.0, summary.clone()), ("<b>".to_owned(), 2.0, summary)];
        let point = |is_best| Some(Point { per_gpu: 7.25, per_user: 3.5, is_best });
        assert!(!page("", &runs, &[]).contains("per GPU"));
        let page = page("a \"title\"", &runs, &[None, point(true)]);
        let row = "<tr style=\"font-weight:bold\"><td>&lt;b><td>7.25<td>3.50";
        assert_eq!((page.matches(row).count(), page.matches("<td>7.25").count()), (1, 1));
        assert_eq!(page.matches("<tr><td>").count(), 2);
        assert!(page.contains("<td>10.00") && page.contains("<td>500.0 ms"), "{page}");
        assert!(page.contains("&lt;b>") && page.contains("a &quot;title&quot;"));
        assert_eq!(page.matches("<svg").count(), 3);
    }
}
