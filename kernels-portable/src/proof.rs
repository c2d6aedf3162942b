//! Conformance runs on record: which tuned rows were proven on which boards.
//!
//! A proof is of machine code: a row whose image has changed since is not proven until its run passes again.

/// What is on record: lines of `board | operator | row | target | sha256 | date | driver | commit`, in order.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    proofs: Vec<Proof<'a>>,
}

/// One row, proven on one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// As the driver names it: another board of the same architecture proves nothing.
    pub board: &'a str,
    /// The operator.
    pub op: &'a str,
    /// Its row.
    pub row: &'a str,
    /// What the row was compiled for.
    pub target: &'a str,
    /// Digest of the image that ran, as the driver got it.
    pub sha256: &'a str,
}

/// A row of a build.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The operator.
    pub op: &'a str,
    /// The row; a name that other operators may have too.
    pub row: &'a str,
    /// Digest of its image for the target in question, if the build has one.
    pub sha256: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// Reads a record, strictly: it decides what runs.
    ///
    /// # Errors
    /// Which line is wrong, and how.
    pub fn parse(text: &'a str) -> Result<Record<'a>, String> {
        parse(text).map(|proofs| Record { proofs })
    }

    /// Every line of it.
    pub fn proofs(&self) -> &[Proof<'a>] {
        &self.proofs
    }

    /// Whether a build's image of a row passed its conformance run on a board.
    ///
    /// # Errors
    /// Why that is not on record, for the table of kernels.
    pub fn proves(&self, claim: &Claim<'_>, board: &str, target: &str) -> Result<(), String> {
        let of_row = |p: &&Proof<'_>| {
            (p.board, p.op, p.row, p.target) == (board, claim.op, claim.row, target)
        };
        let Some(proof) = self.proofs.iter().find(of_row) else {
            return Err(format!("not proven on {board}"));
        };
        match claim.sha256 {
            None => Err(format!("proven on {board}, but its image is not in this build")),
            Some(now) if now == proof.sha256 => Ok(()),
            Some(_) => Err(format!("its image changed since it was proven on {board}")),
        }
    }
}

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
        if board == "emulated" || board.starts_with("simulated ") {
            return Err(wrong("an emulated or simulated device proves nothing"));
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

    const BEFORE: &str = "0f00000000000000000000000000000000000000000000000000000000000000";
    const AFTER: &str = "1f00000000000000000000000000000000000000000000000000000000000000";
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn line(board: &str, op: &str) -> String {
        format!("{board} | {op} | wide | sm_90a | {BEFORE} | 2026-11-30 | 580.95.05 | {COMMIT}")
    }

    #[test]
    fn a_proof_is_of_one_image_on_one_board() {
        let text = line("NVIDIA H200", "gemm.mxfp8");
        let record = Record::parse(&text).unwrap();
        let claim = |op, row, sha256| Claim { op, row, sha256 };
        let wide = |sha256| claim("gemm.mxfp8", "wide", sha256);
        let of = |claim: Claim<'_>, board, target| record.proves(&claim, board, target);
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
            (line("simulated NVIDIA H200", "gemm.mxfp8"), "proves nothing"),
        ] {
            assert!(refused(&text).contains(why), "{text}: {}", refused(&text));
        }
    }
}
