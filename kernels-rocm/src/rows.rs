//! Kernel rows of this backend.

use tandem_hal::{
    Accumulator, Candidate, DeviceInfo, Judge, Ladder, Needs, Numerics, Op, Operator, Options,
    Rank, Result, Row, Want, dispatch,
};
use tandem_portable::{Claim, Portable, Record, Run, any};

use crate::{code_object, proof};

/// Targets that every plain kernel is compiled for.
pub(crate) const ALL: &[&str] = &["gfx942", "gfx950"];

/// How a row is launched.
pub(crate) struct Launch<D: Operator> {
    /// The code object with its kernels.
    pub(crate) object: &'static str,
    /// Operands that passed the operand check, to launches.
    pub(crate) run: Run<D>,
}

/// An operator of this backend.
pub(crate) trait Rows: Operator {
    /// Its kernels; none until one is written.
    fn rows() -> &'static [Row<Self, Launch<Self>>];
}

/// The plain row of an operator that has one.
pub(crate) const fn portable<D: Portable>() -> Row<D, Launch<D>> {
    match D::ROW {
        Some(row) => row.on(ALL, Launch { object: row.image, run: row.run }),
        None => panic!("the operator has no plain row"),
    }
}

/// The rows of an operator that has none but, perhaps, the plain one.
pub(crate) const fn plain_alone<D: Portable>() -> &'static [Row<D, Launch<D>>] {
    const { if D::ROW.is_some() { &[portable::<D>()] } else { &[] } }
}

/// A kernel for the matrix units of some targets that adds in f32, for any number of rows of data, which never see each
/// other; `bits` are those that its kind shares.
pub(crate) const fn tuned<D: Operator>(
    name: &'static str,
    bits: &'static str,
    arch: &'static [&'static str],
    object: &'static str,
    run: Run<D>,
) -> Row<D, Launch<D>> {
    Row {
        name,
        arch,
        rank: Rank::Tuned,
        numerics: Numerics::RowInvariant,
        bits,
        accumulator: Accumulator::F32,
        tokens: 0..=u64::MAX,
        accepts: any,
        suits: |_| true,
        needs: |_, _| Needs { workspace_bytes: 0 },
        launch: Launch { object, run },
    }
}

/// The code object of an operator's row.
pub(crate) fn object(op: &str, row: &str) -> Option<&'static str> {
    fn of<D: Rows>(row: &str) -> Option<&'static str> {
        D::rows().iter().find(|r| r.name == row).map(|r| r.launch.object)
    }
    macro_rules! of_any {
        ([] $($name:ident)*) => {
            match op {
                $(<tandem_hal::$name as Operator>::ID => of::<tandem_hal::$name>(row),)*
                _ => None,
            }
        };
    }
    tandem_hal::for_each_operator!([of_any])
}

/// Every row with its verdict.
pub(crate) fn table(op: &Op, info: &DeviceInfo, want: &Want, options: &Options) -> Vec<Candidate> {
    fn of<D: Rows>(d: &D, on: &On<'_>) -> Vec<Candidate> {
        on.judged(|judge| judge.candidates(D::rows(), d))
    }
    let on = On { info, want, options, record: proof::record() };
    dispatch!(op, d => of(d, &on))
}

/// The rows of an operator for a plan.
///
/// # Errors
/// [`tandem_hal::Error::Unsupported`] with the reason of each row.
pub(crate) fn choose<D: Rows>(
    d: &D,
    info: &DeviceInfo,
    want: &Want,
    options: &Options,
) -> Result<Ladder<D, Launch<D>>> {
    On { info, want, options, record: proof::record() }.choose(D::rows(), d)
}

/// Where and for what rows are chosen, and what is on record of them.
struct On<'a> {
    info: &'a DeviceInfo,
    want: &'a Want,
    options: &'a Options,
    record: &'a Record<'a>,
}

impl On<'_> {
    fn choose<D: Rows>(
        &self,
        rows: &'static [Row<D, Launch<D>>],
        d: &D,
    ) -> Result<Ladder<D, Launch<D>>> {
        self.judged(|judge| judge.choose(rows, d))
    }

    fn judged<D: Rows, T>(&self, with: impl FnOnce(&Judge<'_, D, Launch<D>>) -> T) -> T {
        let On { info, want, options, record } = *self;
        let step_bits = |op: &Op| dispatch!(op, d => choose(d, info, want, options).ok().map(|ladder| ladder.bits()));
        let proven = |row: &Row<D, Launch<D>>| {
            let object = code_object::find(row.launch.object, &info.arch);
            let claim = Claim { op: D::ID, row: row.name, sha256: object.map(|o| o.sha256) };
            record.proves(&claim, &info.board, &info.arch)
        };
        let forced = options.forced(D::ID);
        with(&Judge { info, want, forced, proven: &proven, step_bits: &step_bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use tandem_hal::{
        Cache, Down, Experts, Extents, Form, GateUp, Mxfp8Linear, Real, Record as Entries, RmsNorm,
        Scores, SparseAttention, Sym,
    };

    const RMS: RmsNorm = RmsNorm { width: 64, eps: Real::new(1e-20) };

    /// A row of gfx942's own in front of the plain one.
    fn with_a_tuned_row() -> &'static [Row<RmsNorm, Launch<RmsNorm>>] {
        let plain = RmsNorm::ROW.expect("it has a plain row");
        let launch = || Launch { object: plain.image, run: plain.run };
        let tuned = Row { name: "tuned", rank: Rank::Tuned, ..plain.on(&["gfx942"], launch()) };
        vec![tuned, plain.on(ALL, launch())].leak()
    }

    /// What is chosen on a board by name, where the tuned row is proven on the first alone.
    #[test]
    fn rows_not_proven_on_a_board_are_left_for_the_plain_ones() {
        let sha256 = code_object::find("norm/rms", "gfx942").unwrap().sha256;
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let proof = format!(
            "AMD Instinct MI300X | norm.rms | tuned | gfx942 | {sha256} | 2026-11-30 | 7.0 | {commit}"
        );
        let (record, none) = (Record::parse(&proof).unwrap(), Record::parse("").unwrap());
        let (rows, options) = (with_a_tuned_row(), Options::default());
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, 8)]));
        for (board, chosen, reason) in [
            ("AMD Instinct MI300X", "tuned", None),
            ("AMD Instinct MI325X", "portable", Some("not proven on AMD Instinct MI325X")),
            ("AMD Instinct MI350X", "portable", Some("made for gfx942")),
            ("AMD Instinct MI355X", "portable", Some("made for gfx942")),
        ] {
            let info = Model::named(board).unwrap().info("rocm:0".into());
            let on = On { info: &info, want: &want, options: &options, record: &record };
            let ladder = on.choose(rows, &RMS).unwrap();
            assert_eq!(ladder.at(8).unwrap().name, chosen, "{board}");
            let list = on.judged(|judge| judge.candidates(rows, &RMS));
            let verdict = list[0].verdict.as_ref().err().map(String::as_str);
            assert_eq!((list[0].kernel, verdict), ("tuned", reason), "{board}");
            let on = On { record: &none, ..on };
            assert_eq!(on.choose(rows, &RMS).unwrap().at(8).unwrap().name, "portable", "{board}");
        }
    }

    /// Tuned rows wait for a board: every one goes by its plain row until a run on it is on record.
    #[test]
    fn each_board_by_name_takes_what_is_proven_on_it() {
        fn check<D: Rows>(op: &D, rows: &[&'static str]) {
            for (board, tokens) in Model::names().split(", ").flat_map(|b| [(b, 8), (b, 4096)]) {
                let info = Model::named(board).unwrap().info("rocm:0".into());
                let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, tokens)]));
                let ladder = choose(op, &info, &want, &Options::default()).unwrap();
                assert_eq!(ladder.at(tokens).unwrap().name, "portable", "{board}");
                let list = table(&op.clone().into(), &info, &want, &Options::default());
                let refused = list.into_iter().filter_map(|c| Some((c.kernel, c.verdict.err()?)));
                let why = |row: &&'static str| match (*row, info.arch.as_str()) {
                    ("bf16", "gfx950") => (*row, "made for gfx942".into()),
                    _ => (*row, format!("not proven on {board}")),
                };
                assert_eq!(refused.collect::<Vec<_>>(), rows.iter().map(why).collect::<Vec<_>>());
            }
        }
        check(&Mxfp8Linear { n: 5120, k: 1280 }, &["narrow", "wide"]);
        let (hidden, inter) = (5120, 2304);
        let experts = Experts { total: 384, first: 0, local: 384, top_k: 6, hidden, inter };
        check(&GateUp { experts: experts.clone() }, &["matrix", "bf16"]);
        check(&Down { experts }, &["matrix", "bf16"]);
        let record = Entries::new(Form::Mxfp4, 128);
        let keys = Cache { record, page_entries: 32, pages: Sym::Pages };
        let scores = Scores { heads: 32, head_dim: 128, keys, scale: Real::new(1.0) };
        check(&scores, &["matrix"]);
        let cache =
            |form, pages| Cache { record: Entries::new(form, 512), page_entries: 32, pages };
        let sparse = SparseAttention {
            heads: 64,
            head_dim: 512,
            window: cache(Form::Mxfp8, Sym::WindowPages),
            window_count: 128,
            selected: Some(cache(Form::Nvfp4, Sym::Pages)),
            selected_count: 512,
            scale: Real::new(1.0),
            sink: true,
            lse: false,
        };
        check(&sparse, &["matrix"]);
    }

    #[test]
    fn rows_have_the_code_objects_of_their_sources() {
        assert_eq!(object("norm.rms", "portable"), Some("norm/rms"));
        assert_eq!((object("norm.rms", "none"), object("none", "portable")), (None, None));
    }
}
