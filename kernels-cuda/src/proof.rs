//! Conformance runs on record: which tuned rows were proven on which boards.
//!
//! A proof is of machine code: a row whose image has changed since is not proven until its run passes again.

use std::sync::LazyLock;
use tandem_hal::DeviceInfo;

/// Lines of `board | operator | row | target | sha256 | date | driver | commit`, in order.
const RECORD: &str = include_str!("../proven.txt");

static PROOFS: LazyLock<Vec<Proof<'static>>> = LazyLock::new(|| {
    parse(RECORD).unwrap_or_else(|why| panic!("a test parses the record of this build: {why}"))
});

/// One row, proven on one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof<'a> {
    /// As the driver names it: another board of the same architecture proves nothing.
    board: &'a str,
    op: &'a str,
    row: &'a str,
    target: &'a str,
    /// Digest of the image that ran, as the driver got it.
    sha256: &'a str,
}

/// A row of this build on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'a> {
    /// The operator.
    pub(crate) op: &'a str,
    /// The row; a name that other operators may have too.
    pub(crate) row: &'a str,
    /// Digest of its image for the device, if this build has one.
    pub(crate) sha256: Option<&'a str>,
}

impl Claim<'_> {
    /// Whether this build's image of the row passed its conformance run on the device's board.
    ///
    /// # Errors
    /// Why that is not on record, for the table of kernels.
    pub(crate) fn proven(&self, on: &DeviceInfo) -> Result<(), String> {
        self.among(&PROOFS, &on.board, &on.arch)
    }

    fn among(&self, proofs: &[Proof<'_>], board: &str, target: &str) -> Result<(), String> {
        let of_row =
            |p: &&Proof<'_>| (p.board, p.op, p.row, p.target) == (board, self.op, self.row, target);
        let Some(proof) = proofs.iter().find(of_row) else {
            return Err(format!("not proven on {board}"));
        };
        match self.sha256 {
            None => Err(format!("proven on {board}, but its image is not in this build")),
            Some(now) if now == proof.sha256 => Ok(()),
            Some(_) => Err(format!("its image changed since it was proven on {board}")),
        }
    }
}

/// Reads a record, strictly: it decides what runs.
///
/// # Errors
/// Which line is wrong, and how.
fn parse(text: &str) -> Result<Vec<Proof<'_>>, String> {
    let (mut proofs, mut last) = (vec![], None);
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("proven.txt, line {}: {what}", number + 1);
        let fields: Vec<&str> = line.split(" | ").collect();
        let [board, op, row, target, sha256, date, driver, commit] = fields[..] else {
            return Err(wrong("eight fields are needed, between them ' | '"));
        };
        if fields.iter().any(|field| field.is_empty() || field.trim() != *field) {
            return Err(wrong("a field is empty or has spaces around it"));
        }
        if board == "emulated" {
            return Err(wrong("an emulated device proves nothing"));
        }
        if !is_hex(sha256, 64) || !is_hex(commit, 40) {
            return Err(wrong("the digest takes 64 and the commit 40 lower-case hex digits"));
        }
        if !is_date(date) {
            return Err(wrong("the date is spelled YYYY-MM-DD"));
        }
        if driver.contains(char::is_whitespace) {
            return Err(wrong("the driver's version is one word"));
        }
        let key = Some([board, op, row, target]);
        if last >= key {
            return Err(wrong("lines are in order of their first four fields, each once"));
        }
        last = key;
        proofs.push(Proof { board, op, row, target, sha256 });
    }
    Ok(proofs)
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_date(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;
    use tandem_hal::{Operator, Rank};

    const BEFORE: &str = "0f00000000000000000000000000000000000000000000000000000000000000";
    const AFTER: &str = "1f00000000000000000000000000000000000000000000000000000000000000";
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn line(board: &str, op: &str) -> String {
        format!("{board} | {op} | wide | sm_90a | {BEFORE} | 2026-11-30 | 580.95.05 | {COMMIT}")
    }

    #[test]
    fn a_proof_is_of_one_image_on_one_board() {
        let text = line("NVIDIA H200", "gemm.mxfp8");
        let proofs = parse(&text).unwrap();
        let claim = |op, row, sha256| Claim { op, row, sha256 };
        let wide = |sha256| claim("gemm.mxfp8", "wide", sha256);
        let of = |claim: Claim<'_>, board, target| claim.among(&proofs, board, target);
        let refused = |why: &str| Err(why.to_string());
        let (h200, unknown) = ("NVIDIA H200", refused("not proven on NVIDIA H200"));
        assert_eq!(of(wide(Some(BEFORE)), h200, "sm_90a"), Ok(()));
        let changed = refused("its image changed since it was proven on NVIDIA H200");
        assert_eq!(of(wide(Some(AFTER)), h200, "sm_90a"), changed);
        let absent = refused("proven on NVIDIA H200, but its image is not in this build");
        assert_eq!(of(wide(None), h200, "sm_90a"), absent);
        assert_eq!(of(wide(Some(BEFORE)), h200, "sm_100f"), unknown);
        assert_eq!(of(claim("gemm.mxfp4", "wide", Some(BEFORE)), h200, "sm_90a"), unknown);
        assert_eq!(of(claim("gemm.mxfp8", "tall", Some(BEFORE)), h200, "sm_90a"), unknown);
        for board in ["NVIDIA H100", "NVIDIA H200 NVL", "emulated"] {
            let elsewhere = refused(&format!("not proven on {board}"));
            assert_eq!(of(wide(Some(BEFORE)), board, "sm_90a"), elsewhere);
        }
    }

    #[test]
    fn lines_that_are_not_proofs_are_named() {
        let good = line("NVIDIA H200", "gemm.mxfp8");
        let after = line("NVIDIA H200", "norm.rms");
        assert_eq!(parse(&format!("# text\n{good}\n{after}\n")).unwrap().len(), 2);
        let refused = |text: &str| parse(text).unwrap_err();
        for (text, why) in [
            (format!("{good}\n{good}"), "line 2: lines are in order"),
            (format!("{after}\n{good}"), "line 2: lines are in order"),
            (format!("{good}\n\n{after}"), "line 2: eight fields"),
            (good.replace(BEFORE, &BEFORE[1..]), "64 and the commit 40"),
            (good.replace(BEFORE, &BEFORE.replace('f', "F")), "64 and the commit 40"),
            (good.replace(COMMIT, "unknown"), "64 and the commit 40"),
            (good.replace("2026-11-30", "30 November"), "YYYY-MM-DD"),
            (good.replace("580.95.05", "580 open"), "one word"),
            (good.replace("wide", ""), "empty"),
            (good.replace(" | wide", ""), "eight fields"),
            (line("emulated", "gemm.mxfp8"), "proves nothing"),
        ] {
            assert!(refused(&text).contains(why), "{text}: {}", refused(&text));
        }
    }

    /// Why a line of the record can never prove anything.
    fn useless<D: Rows>(proof: &Proof<'_>) -> Option<String> {
        let row = D::rows().iter().find(|row| row.name == proof.row);
        match row {
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
        for proof in parse(RECORD).unwrap() {
            assert_eq!(useless(&proof), None, "{proof:?}: take the line out of proven.txt");
        }
        let embed =
            Proof { board: "b", op: "rows.embed", row: "portable", target: "t", sha256: "" };
        for (proof, why) in [
            (Proof { op: "rows.none", ..embed }, "no operator rows.none"),
            (Proof { row: "none", ..embed }, "no row none"),
            (embed, "need no proof"),
        ] {
            assert!(useless(&proof).is_some_and(|seen| seen.contains(why)), "{proof:?}");
        }
    }
}
