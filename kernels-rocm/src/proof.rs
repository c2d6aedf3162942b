//! Conformance runs on record: which tuned rows were proven on which boards.

use std::sync::LazyLock;

use tandem_portable::Record;

static RECORD: LazyLock<Record<'static>> = LazyLock::new(|| {
    let record = Record::parse(include_str!("../proven.txt"));
    record.unwrap_or_else(|why| panic!("a test parses the record of this build: {why}"))
});

/// The record of this build.
pub(crate) fn record() -> &'static Record<'static> {
    &RECORD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::rows::Rows;
    use tandem_hal::{Operator, Rank};
    use tandem_portable::Proof;

    /// Why a line of the record can never prove anything.
    fn useless<D: Rows>(proof: &Proof<'_>) -> Option<String> {
        let row = D::rows().iter().find(|row| row.name == proof.row);
        match row {
            _ if Model::named(proof.board).is_none() => Some(format!("no board {}", proof.board)),
            None => Some(format!("{} has no row {}", D::ID, proof.row)),
            Some(row) if row.rank == Rank::Portable => Some("portable rows need no proof".into()),
            Some(row) if row.arch.contains(&proof.target) => None,
            Some(_) => Some(format!("{} is not made for {}", proof.row, proof.target)),
        }
    }

    macro_rules! useless {
        ([$proof:ident] $($name:ident)*) => {
            match $proof.op {
                $(<tandem_hal::$name as Operator>::ID => useless::<tandem_hal::$name>($proof),)*
                other => Some(format!("there is no operator {other}")),
            }
        };
    }

    #[test]
    fn every_line_of_the_record_is_of_a_tuned_row() {
        let useless = |proof: &Proof<'_>| tandem_hal::for_each_operator!([useless], proof);
        for proof in record().proofs() {
            assert_eq!(useless(proof), None, "{proof:?}: take the line out of proven.txt");
        }
        let (board, target) = ("AMD Instinct MI300X", "gfx942");
        let embed = Proof { board, op: "rows.embed", row: "portable", target, sha256: "" };
        for (proof, why) in [
            (Proof { op: "rows.none", ..embed }, "no operator rows.none"),
            (Proof { row: "none", ..embed }, "no row none"),
            (Proof { board: "MI300", ..embed }, "no board MI300"),
            (Proof { board: "simulated AMD Instinct MI300X", ..embed }, "no board simulated"),
            (embed, "need no proof"),
        ] {
            assert!(useless(&proof).is_some_and(|seen| seen.contains(why)), "{proof:?}");
        }
    }
}
