//! What is given up for what: the work of a GPU against the speed that one user sees.

use serde_json::{Value, json};

use super::summary::Summary;

/// A run as a choice between the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Output tokens a second, of all users together, for each GPU.
    pub(super) per_gpu: f64,
    /// Tokens a second that a user sees come, once the first is there: one over the median time per
    /// token.
    pub(super) per_user: f64,
    /// No other run is as good in both and better in one.
    pub(super) is_best: bool,
}

/// The point of each run on so many GPUs, in order. A run without a time per token has none.
pub(super) fn points<'a>(
    runs: impl IntoIterator<Item = &'a Summary>,
    gpus: u32,
) -> Vec<Option<Point>> {
    let point = |run: &Summary| {
        let seconds = run.tpot.at(0.5);
        let (per_gpu, per_user) = (run.output_rate() / f64::from(gpus), 1.0 / seconds);
        (seconds > 0.0).then_some(Point { per_gpu, per_user, is_best: false })
    };
    let mut points: Vec<_> = runs.into_iter().map(point).collect();
    let all: Vec<_> = points.iter().copied().flatten().collect();
    for point in points.iter_mut().flatten() {
        point.is_best = !all.iter().any(|other| other.beats(point));
    }
    points
}

impl Point {
    fn beats(&self, other: &Self) -> bool {
        let as_good = self.per_gpu >= other.per_gpu && self.per_user >= other.per_user;
        as_good && (self.per_gpu > other.per_gpu || self.per_user > other.per_user)
    }

    /// Its figures, `null` for none.
    pub(super) fn json(point: Option<&Self>) -> Value {
        json!({
            "output_throughput_per_gpu": point.map(|point| point.per_gpu),
            "output_throughput_per_user": point.map(|point| point.per_user),
            "pareto_optimal": point.map(|point| point.is_best),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::Promise;
    use super::super::timeline::Timeline;
    use super::*;

    /// `users` answers at once of ten tokens, the first at once and each after it `gap` later.
    fn run(users: usize, gap: f64) -> Summary {
        let pieces: Vec<f64> = (0..10).map(|piece| f64::from(piece) * gap).collect();
        let end = 9.0 * gap;
        let timeline = Timeline { pieces, end, output_tokens: 10, ..Timeline::default() };
        Summary::new(&vec![timeline; users], &Promise::default())
    }

    #[test]
    fn points_are_those_that_can_be_worked_out_by_hand() {
        // 10 tokens in 0.9 s, 40 in 1.8 s, 20 in 3.6 s, 100 in 3.6 s.
        let runs = [run(1, 0.1), run(4, 0.2), run(2, 0.4), run(10, 0.4)];
        let points = points(&runs, 2);
        let right = [
            (5.0 / 0.9, 10.0, true),
            (20.0 / 1.8, 5.0, true),
            (10.0 / 3.6, 2.5, false),
            (50.0 / 3.6, 2.5, true),
        ];
        for (point, (per_gpu, per_user, is_best)) in points.iter().zip(right) {
            let point = point.unwrap();
            assert!((point.per_gpu - per_gpu).abs() < 1e-9, "{point:?}");
            assert!((point.per_user - per_user).abs() < 1e-9, "{point:?}");
            assert_eq!(point.is_best, is_best, "{point:?}");
        }
    }

    #[test]
    fn equals_do_not_beat_each_other_and_nothing_has_no_point() {
        let runs = [run(1, 0.1), run(1, 0.1), Summary::new(&[], &Promise::default())];
        let points = points(&runs, 1);
        assert!(points[0].unwrap().is_best && points[1].unwrap().is_best);
        assert_eq!(points[2], None);
    }
}
