//! Rows of the vector tables: a name, and what is computed in each lane, as a function of typed values.

use super::element::{Element, Output};
use super::vector::Vector;
use crate::fault::FaultKind;
use crate::machine::{Kind, LANES, Wave};

type Run = dyn Fn(&mut Wave, &Vector) -> Result<(), FaultKind> + Send + Sync;

/// A row.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) sources: Vec<Kind>,
    /// Kind of the vector register's result.
    pub(crate) result: Option<Kind>,
    /// Whether a mask of lanes is written.
    pub(crate) mask: bool,
    pub(crate) extra: Extra,
    pub(crate) run: Box<Run>,
}

/// What an instruction has beside the operands that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Nothing,
    /// The result register is the last operand too.
    Accumulates,
    /// `vcc` is the last operand.
    ReadsVcc,
    /// The mask that is written becomes that of the active lanes too.
    WritesExec,
    /// A table in a modifier is the last operand.
    Table,
    /// The bits of `op_sel` are the last operand.
    Selects,
    /// The result register is the last operand but one, the bits of `op_sel` the last.
    IntoHalf,
}

impl Extra {
    /// Operands that are not printed.
    pub(crate) fn operands(self) -> usize {
        match self {
            Self::Nothing | Self::WritesExec => 0,
            Self::Accumulates | Self::ReadsVcc | Self::Table | Self::Selects => 1,
            Self::IntoHalf => 2,
        }
    }
}

impl Row {
    fn new<D: Output>(
        name: &'static str,
        sources: Vec<Kind>,
        run: impl Fn(&mut Wave, &Vector) -> Result<(), FaultKind> + Send + Sync + 'static,
    ) -> Self {
        let (result, mask) = (D::VECTOR, D::MASK);
        Self { name, sources, result, mask, extra: Extra::Nothing, run: Box::new(run) }
    }

    /// The result register is the last operand too.
    pub(crate) fn accumulates(self) -> Self {
        Self { extra: Extra::Accumulates, ..self }
    }

    /// `vcc` is the last operand.
    pub(crate) fn reads_vcc(self) -> Self {
        Self { extra: Extra::ReadsVcc, ..self }
    }

    /// A table in a modifier is the last operand.
    pub(crate) fn by_table(self) -> Self {
        Self { extra: Extra::Table, ..self }
    }

    /// The bits of `op_sel` are the last operand.
    pub(crate) fn selects(self) -> Self {
        Self { extra: Extra::Selects, ..self }
    }

    /// The result register is the last operand but one, the bits of `op_sel` the last.
    pub(crate) fn into_half(self) -> Self {
        Self { extra: Extra::IntoHalf, ..self }
    }

    /// The mask that is written becomes that of the active lanes too.
    pub(crate) fn writes_exec(self) -> Self {
        Self { extra: Extra::WritesExec, ..self }
    }
}

/// A row of one operand.
pub(crate) fn one<A: Element, D: Output>(
    name: &'static str,
    f: impl Fn(A) -> D + Send + Sync + 'static,
) -> Row {
    Row::new::<D>(name, vec![A::KIND], move |wave, vector| {
        let a = A::fetch(wave, &vector.sources[0])?;
        D::store(&a.map(&f), wave, vector)
    })
}

/// A row of two operands.
pub(crate) fn two<A: Element, B: Element, D: Output>(
    name: &'static str,
    f: impl Fn(A, B) -> D + Send + Sync + 'static,
) -> Row {
    Row::new::<D>(name, vec![A::KIND, B::KIND], move |wave, vector| {
        let a = A::fetch(wave, &vector.sources[0])?;
        let b = B::fetch(wave, &vector.sources[1])?;
        let mut d = [D::default(); LANES];
        for lane in 0..LANES {
            d[lane] = f(a[lane], b[lane]);
        }
        D::store(&d, wave, vector)
    })
}

/// A row of three operands.
pub(crate) fn three<A: Element, B: Element, C: Element, D: Output>(
    name: &'static str,
    f: impl Fn(A, B, C) -> D + Send + Sync + 'static,
) -> Row {
    Row::new::<D>(name, vec![A::KIND, B::KIND, C::KIND], move |wave, vector| {
        let a = A::fetch(wave, &vector.sources[0])?;
        let b = B::fetch(wave, &vector.sources[1])?;
        let c = C::fetch(wave, &vector.sources[2])?;
        let mut d = [D::default(); LANES];
        for lane in 0..LANES {
            d[lane] = f(a[lane], b[lane], c[lane]);
        }
        D::store(&d, wave, vector)
    })
}

/// A row of four operands.
pub(crate) fn four<A: Element, B: Element, C: Element, E: Element, D: Output>(
    name: &'static str,
    f: impl Fn(A, B, C, E) -> D + Send + Sync + 'static,
) -> Row {
    Row::new::<D>(name, vec![A::KIND, B::KIND, C::KIND, E::KIND], move |wave, vector| {
        let a = A::fetch(wave, &vector.sources[0])?;
        let b = B::fetch(wave, &vector.sources[1])?;
        let c = C::fetch(wave, &vector.sources[2])?;
        let e = E::fetch(wave, &vector.sources[3])?;
        let mut d = [D::default(); LANES];
        for lane in 0..LANES {
            d[lane] = f(a[lane], b[lane], c[lane], e[lane]);
        }
        D::store(&d, wave, vector)
    })
}
