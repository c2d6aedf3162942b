//! Operands as the disassembler prints them.

use super::modifiers::number;

/// An operand and the signs written around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) negate: bool,
    pub(crate) absolute: bool,
    pub(crate) sign_extend: bool,
}

/// What an operand names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// Vector registers; from 256 on those for accumulation.
    Vector { first: u16, count: u16 },
    /// Scalar registers: 106 is `vcc`, 124 `m0`, 126 `exec`.
    Scalar { first: u8, count: u8 },
    /// A small number in the encoding.
    Integer(i64),
    /// A word behind the encoding.
    Literal(u32),
    /// A floating-point number in the encoding.
    Float(f64),
    /// The scalar condition.
    Condition,
    /// Whether `vcc` is zero.
    VccZero,
    /// Whether `exec` is zero.
    ExecZero,
    /// Where flat addresses begin to mean LDS.
    SharedBase,
    /// Where flat addresses begin to mean scratch memory.
    PrivateBase,
    /// No address register.
    Off,
}

impl Operand {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut rest, mut negate, mut absolute, mut sign_extend) =
            (text.trim(), false, false, false);
        let inside = |text, name: &str| -> Option<&str> {
            let text: &str = text;
            text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
        };
        loop {
            if let Some(inner) = inside(rest, "neg") {
                (rest, negate) = (inner, true);
            } else if let Some(inner) = inside(rest, "abs") {
                (rest, absolute) = (inner, true);
            } else if let Some(inner) = inside(rest, "sext") {
                (rest, sign_extend) = (inner, true);
            } else if let Some(inner) = rest.strip_prefix('|').and_then(|r| r.strip_suffix('|')) {
                (rest, absolute) = (inner, true);
            } else if let Some(inner) =
                rest.strip_prefix('-').filter(|r| !r.starts_with(|c: char| c.is_ascii_digit()))
            {
                (rest, negate) = (inner, true);
            } else {
                break;
            }
        }
        let value = Value::parse(rest).ok_or_else(|| format!("operand `{text}`"))?;
        Ok(Self { value, negate, absolute, sign_extend })
    }

    /// One more than the highest vector register that it names.
    pub(crate) fn vector_end(&self) -> u16 {
        match self.value {
            Value::Vector { first, count } => first + count,
            _ => 0,
        }
    }

    /// The operand, if nothing is written around it.
    pub(crate) fn plain(&self) -> Result<Value, String> {
        if self.negate || self.absolute || self.sign_extend {
            return Err("a sign on an operand that takes none".into());
        }
        Ok(self.value)
    }
}

impl Value {
    fn parse(text: &str) -> Option<Self> {
        let scalar = |first, count| Some(Self::Scalar { first, count });
        match text {
            "vcc" => scalar(106, 2),
            "vcc_lo" => scalar(106, 1),
            "vcc_hi" => scalar(107, 1),
            "flat_scratch" => scalar(102, 2),
            "flat_scratch_lo" => scalar(102, 1),
            "flat_scratch_hi" => scalar(103, 1),
            "m0" => scalar(124, 1),
            "exec" => scalar(126, 2),
            "exec_lo" => scalar(126, 1),
            "exec_hi" => scalar(127, 1),
            "scc" | "src_scc" => Some(Self::Condition),
            "src_vccz" => Some(Self::VccZero),
            "src_execz" => Some(Self::ExecZero),
            "src_shared_base" => Some(Self::SharedBase),
            "src_private_base" => Some(Self::PrivateBase),
            "off" => Some(Self::Off),
            _ => Self::numbered(text),
        }
    }

    fn numbered(text: &str) -> Option<Self> {
        if let Some((first, count)) = registers(text, 'v').filter(|(f, n)| f + n <= 256) {
            return Some(Self::Vector { first, count });
        }
        if let Some((first, count)) = registers(text, 'a').filter(|(f, n)| f + n <= 256) {
            return Some(Self::Vector { first: 256 + first, count });
        }
        if let Some((first, count)) = registers(text, 's').filter(|(f, n)| f + n <= 102) {
            return Some(Self::Scalar { first: first as u8, count: count as u8 });
        }
        if let Some(hex) = text.strip_prefix("0x") {
            return u32::from_str_radix(hex, 16).ok().map(Self::Literal);
        }
        number(text).map(Self::Integer).or_else(|| text.parse().ok().map(Self::Float))
    }
}

/// First and count of `v3` or `v[3:6]`.
fn registers(text: &str, kind: char) -> Option<(u16, u16)> {
    let rest = text.strip_prefix(kind)?;
    let Some(range) = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')) else {
        return Some((rest.parse::<u8>().ok()?.into(), 1));
    };
    let (first, last) = range.split_once(':').unwrap_or((range, range));
    let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then(|| (u16::from(first), u16::from(last - first) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Operand::parse(text).expect("an operand").value
    }

    #[test]
    fn registers_and_numbers() {
        assert_eq!(value("v[4:7]"), Value::Vector { first: 4, count: 4 });
        assert_eq!(value("a255"), Value::Vector { first: 511, count: 1 });
        assert_eq!(value("s[100:101]"), Value::Scalar { first: 100, count: 2 });
        assert_eq!(value("vcc"), Value::Scalar { first: 106, count: 2 });
        assert_eq!(value("-16"), Value::Integer(-16));
        assert_eq!(value("0xffffffff"), Value::Literal(u32::MAX));
        assert_eq!(value("0.15915494"), Value::Float(0.159_154_94));
    }

    #[test]
    fn signs() {
        let operand = Operand::parse("-|v3|").expect("an operand");
        assert!(operand.negate && operand.absolute && operand.plain().is_err());
        assert!(Operand::parse("-4.0").is_ok_and(|o| !o.negate && o.value == Value::Float(-4.0)));
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for text in ["v256", "s[101:104]", "v[5:4]", "src_pops_exiting_wave_id", "ttmp4", ""] {
            assert!(Operand::parse(text).is_err(), "{text}");
        }
    }
}
