//! Scalar arithmetic: the frame that the tables' rows run in.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{scalar_arithmetic, scalar_bits};
use crate::decode::{Operand, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{EXEC, Kind, Source, Wave};

/// A scalar operand to read.
#[derive(Debug)]
pub(crate) struct ScalarSource(Source);

impl ScalarSource {
    /// The operand as a value of one word or two.
    pub(crate) fn decode(operand: &Operand, words: u8) -> Result<Self, String> {
        operand.plain()?;
        if matches!(operand.value, Value::Vector { .. }) {
            return Err("a vector register as a scalar operand".into());
        }
        let kind = if words == 2 { Kind::B64 } else { Kind::B32 };
        Source::decode(operand, kind).map(Self)
    }

    pub(crate) fn word(&self, wave: &Wave) -> Result<u32, FaultKind> {
        self.0.uniform_word(wave, 0)
    }

    pub(crate) fn pair(&self, wave: &Wave) -> Result<u64, FaultKind> {
        self.0.uniform_pair(wave)
    }
}

/// A row of the tables: what an instruction makes of its operands.
pub(crate) struct Row {
    name: &'static str,
    /// Words of the result; none where only the condition is set.
    result: u8,
    /// Words of each operand.
    operands: Vec<u8>,
    shape: Shape,
    run: Box<dyn Fn(Inputs) -> Outcome + Send + Sync>,
}

/// What surrounds a row's arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    /// The result register is also the first operand.
    Accumulates,
    /// The old active lanes go into the result register, the result becomes the active lanes.
    SavesExec,
}

/// What a row's arithmetic sees.
#[derive(Clone, Copy)]
pub(crate) struct Inputs {
    pub(crate) a: u64,
    pub(crate) b: u64,
    /// The scalar condition.
    pub(crate) condition: bool,
}

/// What a row's arithmetic gives: the result, none to leave the register; the condition, none to leave it.
pub(crate) struct Outcome {
    pub(crate) value: Option<u64>,
    pub(crate) condition: Option<bool>,
}

/// A result that leaves the condition.
pub(crate) fn value(value: impl Into<u64>) -> Outcome {
    Outcome { value: Some(value.into()), condition: None }
}

/// A result, and whether it is not zero.
pub(crate) fn nonzero(value: impl Into<u64>) -> Outcome {
    let value = value.into();
    Outcome { value: Some(value), condition: Some(value != 0) }
}

/// A result and a condition.
pub(crate) fn flagged(value: impl Into<u64>, condition: bool) -> Outcome {
    Outcome { value: Some(value.into()), condition: Some(condition) }
}

/// A condition alone.
pub(crate) fn condition(condition: bool) -> Outcome {
    Outcome { value: None, condition: Some(condition) }
}

impl Row {
    /// A row with `result` words and operands of so many words each.
    pub(crate) fn new(
        name: &'static str,
        result: u8,
        operands: &[u8],
        run: impl Fn(Inputs) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        Self { name, result, operands: operands.to_vec(), shape: Shape::Plain, run: Box::new(run) }
    }

    /// The result register is also the first operand.
    pub(crate) fn accumulates(self) -> Self {
        Self { shape: Shape::Accumulates, ..self }
    }

    /// The old active lanes go into the result register, the result becomes the active lanes.
    pub(crate) fn saves_exec(self) -> Self {
        Self { shape: Shape::SavesExec, ..self }
    }
}

static ROWS: LazyLock<HashMap<&'static str, Row>> = LazyLock::new(|| {
    let rows = scalar_arithmetic::rows().into_iter().chain(scalar_bits::rows());
    rows.map(|row| (row.name, row)).collect()
});

/// A decoded scalar instruction.
pub(crate) struct Scalar {
    row: &'static Row,
    destination: Option<u8>,
    sources: Vec<(ScalarSource, u8)>,
}

pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<Scalar, String> {
    let row = ROWS.get(parts.name).ok_or("the mnemonic is not modelled")?;
    let mut operands = parts.operands.iter();
    let mut destination = None;
    let mut sources = Vec::new();
    if row.result > 0 || row.shape == Shape::SavesExec {
        let operand = operands.next().ok_or("an operand is missing")?;
        let Value::Scalar { first, count } = operand.plain()? else {
            return Err("a scalar register was expected".into());
        };
        if count != row.result {
            return Err("a result of another width".into());
        }
        destination = Some(first);
        if row.shape == Shape::Accumulates {
            sources.push((ScalarSource::decode(operand, row.result)?, row.result));
        }
    }
    for words in &row.operands[sources.len()..] {
        let operand = operands.next().ok_or("an operand is missing")?;
        if *words == 2 && row.name.ends_with("_i64") && matches!(operand.value, Value::Literal(_)) {
            return Err("a literal as a 64-bit number with a sign".into());
        }
        sources.push((ScalarSource::decode(operand, *words)?, *words));
    }
    if operands.next().is_some() {
        return Err("an operand too many".into());
    }
    Ok(Scalar { row, destination, sources })
}

impl Scalar {
    pub(crate) fn execute(&self, wave: &mut Wave) -> Result<(), FaultKind> {
        let read = |at: usize| match self.sources.get(at) {
            None => Ok(0),
            Some((source, 2)) => source.pair(wave),
            Some((source, _)) => source.word(wave).map(u64::from),
        };
        let mut inputs = Inputs { a: read(0)?, b: read(1)?, condition: wave.condition };
        if self.row.shape == Shape::SavesExec {
            inputs.b = wave.active();
        }
        let outcome = (self.row.run)(inputs);
        if let (Some(to), Some(value)) = (self.destination, outcome.value) {
            match self.row.shape {
                Shape::SavesExec => {
                    wave.write_scalar_pair(to, inputs.b)?;
                    wave.write_scalar_pair(EXEC, value)?;
                }
                _ if self.row.result == 2 => wave.write_scalar_pair(to, value)?,
                _ => wave.write_scalar(to, value as u32)?,
            }
        }
        if let Some(condition) = outcome.condition {
            wave.condition = condition;
        }
        Ok(())
    }
}
