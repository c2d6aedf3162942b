//! One case: a descriptor, its extents, and the seed of its data.

use super::operator;
use tandem_hal::{Dir, Extents, Facts, Line, Op};
use tandem_reference::Fill;

/// What one trial repeats many times.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The operator and descriptor.
    pub op: Op,
    /// The launch's extents.
    pub extents: Extents,
    /// Decides all data, its profile included.
    pub seed: u64,
}

/// Operand bytes, by rank and place; empty for pure outputs.
pub type Data = Vec<Vec<Vec<u8>>>;

impl Case {
    /// `descriptor line, extents line`, as `--case` takes it.
    pub fn line(&self) -> String {
        format!("{} {}", self.op.line(), self.extents.line())
    }

    /// The case that a line spells, with the data of `seed`.
    ///
    /// # Errors
    /// Why the line spells none.
    pub fn parse(line: &str, seed: u64) -> Result<Case, String> {
        let split = line.rfind(" {").ok_or("a case is '<descriptor line> <extents line>'")?;
        let (op, extents) = line.split_at(split);
        Ok(Case { op: Op::parse_line(op)?, extents: Extents::parse(extents)?, seed })
    }

    /// Operand bytes for every rank.
    pub fn data(&self, facts: &Facts, fill: Fill) -> Data {
        let rank = |rank: u32| {
            let fill = Fill { seed: fill.seed.wrapping_add(u64::from(rank) << 40), ..fill };
            let operands = facts.operands.iter().enumerate();
            operands
                .map(|(place, (_, dir, spec))| match dir {
                    Dir::Out => vec![],
                    Dir::In | Dir::InOut => fill.bytes(place, spec, &self.extents),
                })
                .collect()
        };
        (0..operator::ranks(&self.op)).map(rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::{Mxfp8Linear, Sym};

    #[test]
    fn lines_parse_back() {
        let op = Mxfp8Linear { n: 48, k: 64 }.into();
        let case = Case { op, extents: Extents::of(&[(Sym::Tokens, 3)]), seed: 9 };
        assert_eq!(case.line(), "gemm.mxfp8{n=48,k=64} {tokens=3}");
        assert_eq!(Case::parse(&case.line(), 9), Ok(case));
        assert!(Case::parse("gemm.mxfp8{n=48,k=64}", 0).is_err());
        assert!(Case::parse("gemm.none{n=48,k=64} {}", 0).is_err());
    }
}
