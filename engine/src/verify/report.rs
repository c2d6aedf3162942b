//! Measured figures and their gates.

use std::fmt;

/// What a figure must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// Printed, not judged.
    None,
}

/// One measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Golden file it came from.
    pub file: String,
    /// Layer, for figures of one layer.
    pub layer: Option<usize>,
    /// What was measured.
    pub what: String,
    /// The number.
    pub measured: f64,
    /// Its gate.
    pub limit: Limit,
}

impl Figure {
    /// Whether the gate holds. NaN holds no gate.
    pub fn holds(&self) -> bool {
        match self.limit {
            Limit::AtMost(most) => self.measured <= most,
            Limit::AtLeast(least) => self.measured >= least,
            Limit::None => true,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = self.layer.map_or_else(String::new, |l| format!("layer {l}"));
        let (file, what, measured) = (&self.file, &self.what, self.measured);
        write!(f, "{file:<16} {layer:<9} {what:<34} {measured:>12.6}")?;
        let word = if self.holds() { "ok" } else { "FAIL" };
        match self.limit {
            Limit::AtMost(most) => write!(f, "  <= {most:<8} {word}"),
            Limit::AtLeast(least) => write!(f, "  >= {least:<8} {word}"),
            Limit::None => write!(f, "  reported"),
        }
    }
}

/// All figures of a run, in order, and what was left out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Figures.
    pub figures: Vec<Figure>,
    /// `file: tensor`, with the layer between them where it is of one, for each tensor that the
    /// golden files lack.
    pub skipped: Vec<String>,
}

impl Report {
    /// Add a figure.
    pub fn add(
        &mut self,
        file: &str,
        layer: Option<usize>,
        what: impl Into<String>,
        measured: f64,
        limit: Limit,
    ) {
        self.figures.push(Figure { file: file.into(), layer, what: what.into(), measured, limit });
    }

    /// Note a comparison that a golden file gives no material for.
    pub fn skip(&mut self, file: &str, layer: Option<usize>, tensor: &str) {
        let layer = layer.map_or_else(String::new, |layer| format!("layer {layer}: "));
        self.skipped.push(format!("{file}: {layer}{tensor}"));
    }

    /// Figures beyond their gates.
    pub fn failures(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|f| !f.holds())
    }

    /// Whether every gate holds and there was at least one.
    pub fn passes(&self) -> bool {
        self.gates() > 0 && self.failures().next().is_none()
    }

    fn gates(&self) -> usize {
        self.figures.iter().filter(|f| f.limit != Limit::None).count()
    }

    /// One line: passed, or the first layer that departs.
    pub fn verdict(&self) -> String {
        let gates = self.gates();
        if gates == 0 {
            return "FAILED: the golden files hold nothing that could be compared".into();
        }
        let failed = self.failures().count();
        let Some(first) = self.failures().next() else {
            return format!("PASSED: {gates} gates hold");
        };
        // The lowest layer is where the departure began; later ones may only follow.
        let lowest = self.failures().filter(|f| f.layer.is_some()).min_by_key(|f| f.layer);
        let first = lowest.unwrap_or(first);
        let place = first.layer.map_or_else(String::new, |l| format!(", layer {l}"));
        format!(
            "FAILED: {failed} of {gates} gates; first departure: {}{place}: {}",
            first.file, first.what
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for figure in &self.figures {
            writeln!(f, "{figure}")?;
        }
        for skipped in &self.skipped {
            writeln!(f, "skipped, not in the file: {skipped}")?;
        }
        writeln!(f, "{}", self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_lowest_layer() {
        let mut report = Report::default();
        assert!(!report.passes(), "nothing compared is no pass");
        report.add("a", None, "perplexity", 0.1, Limit::AtMost(0.2));
        assert!(report.passes());
        report.skip("a", Some(4), "expert_ids");
        report.skip("a", None, "greedy");
        let text = report.to_string();
        assert!(text.contains("\nskipped, not in the file: a: layer 4: expert_ids\n"), "{text}");
        assert!(text.contains("\nskipped, not in the file: a: greedy\n"), "{text}");
        report.add("a", Some(4), "window_kv unequal", f64::NAN, Limit::AtMost(1e-3));
        report.add("a", Some(2), "expert sets equal", 0.9, Limit::AtLeast(0.995));
        assert!(!report.passes());
        let verdict = report.verdict();
        assert!(verdict.contains("2 of 3") && verdict.contains("layer 2"), "{verdict}");
    }
}
