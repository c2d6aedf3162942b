//! The plan as text.

use std::fmt;

use super::board::{ExpertPath, Placement};
use super::planner::{Plan, gib};
use super::rank::Item;
use super::table::{Table, gib3, grouped};
use tandem_hal::Dialect;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.ledger)?;
        self.setting(f)?;
        writeln!(f, "{}", items("weights of a rank", &self.weights.device))?;
        if !self.weights.host.is_empty() {
            writeln!(f, "{}", items("host memory of the node", &self.weights.host))?;
        }
        writeln!(f, "{}", items("workspace of a rank (estimate)", &self.workspace))?;
        write!(f, "{}", self.totals())?;
        self.verdict(f)
    }
}

impl Plan {
    fn setting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (board, limits) = (&self.boards.board, &self.limits);
        writeln!(
            f,
            "{} x {} ({}, {} each): tensor parallel {}, {} of the model; Engram tables on the {}",
            self.boards.count,
            board.name,
            board.architecture.name,
            gib(board.memory_bytes),
            limits.tensor_parallel,
            if self.replicas == 1 {
                "one copy".into()
            } else {
                format!("{} copies", self.replicas)
            },
            match limits.engram {
                Placement::Device => "devices",
                Placement::Host => "host",
            },
        )?;
        let experts = match board.architecture.expert_path() {
            ExpertPath::Fp4Units => "FP4 matrix units",
            ExpertPath::ExpandToFp8(Dialect::Fn) => "FP8 matrix units, codes expanded",
            ExpertPath::ExpandToFp8(Dialect::Fnuz) => "FP8 (fnuz) matrix units, codes expanded",
        };
        writeln!(f, "experts by {experts}; planned: {}", board.notes)?;
        writeln!(
            f,
            "a rank holds its share of the routed experts and of the head, the rest whole"
        )?;
        writeln!(
            f,
            "{} sequences, {} tokens a step, {} drafts, {} pictures, sequences up to {} tokens\n",
            grouped(limits.sequences),
            grouped(limits.step_tokens),
            limits.draft_tokens,
            limits.pictures,
            grouped(limits.context_tokens),
        )
    }

    fn totals(&self) -> Table {
        let mut table = Table::new(&["memory of a rank", "B", "GiB"]);
        let utilisation = format!("usable, {} of the board", self.limits.utilisation);
        let windows = format!("windows of {} sequences", grouped(self.limits.sequences));
        for (label, bytes) in [
            (utilisation, self.usable_bytes),
            ("weights".to_owned(), self.weight_bytes()),
            ("workspace".to_owned(), self.workspace_bytes()),
            (windows, self.window_bytes()),
            ("left for compressed caches".to_owned(), self.cache_bytes()),
            ("one longest sequence".to_owned(), self.context_bytes),
        ] {
            table.row(vec![label, grouped(bytes), gib3(bytes)]);
        }
        table
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.require_fit() {
            Ok(()) => writeln!(
                f,
                "\nfits: {} tokens of cache a copy, {} sequences of the longest length",
                grouped(self.cache_tokens),
                grouped(self.cache_tokens / self.limits.context_tokens),
            ),
            Err(error) => writeln!(f, "\n{error}"),
        }
    }
}

fn items(title: &str, items: &[Item]) -> Table {
    let mut table = Table::new(&[title, "B", "GiB"]);
    for item in items {
        table.row(vec![item.label.to_owned(), grouped(item.bytes), gib3(item.bytes)]);
    }
    let total = items.iter().map(|item| item.bytes).sum();
    table.row(vec!["total".to_owned(), grouped(total), gib3(total)]);
    table
}
