//! What stands behind an instruction's operands. Everything is taken by somebody or refused.

/// Modifiers of one instruction that nobody has taken yet.
pub(crate) struct Modifiers<'a> {
    left: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Modifiers<'a> {
    pub(crate) fn new(parts: &[&'a str]) -> Self {
        let named =
            |part: &&'a str| part.split_once(':').map_or((*part, None), |(n, v)| (n, Some(v)));
        Self { left: parts.iter().map(named).collect() }
    }

    fn take(&mut self, name: &str) -> Option<Option<&'a str>> {
        let at = self.left.iter().position(|(other, _)| *other == name)?;
        Some(self.left.remove(at).1)
    }

    /// Takes a modifier that stands alone; whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(value)) => {
                Err(format!("modifier {name}:{value}, where no value was expected"))
            }
        }
    }

    /// Takes a modifier with a word as its value.
    pub(crate) fn word(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(format!("modifier {name} without a value")),
        }
    }

    /// Takes a modifier with a number as its value.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.word(name)? else { return Ok(None) };
        number(value).map(Some).ok_or_else(|| format!("modifier {name}:{value}"))
    }

    /// Takes a modifier with a list of bits as its value: bit i is the list's element i. `default` where the
    /// modifier is absent.
    pub(crate) fn bits(&mut self, name: &str, default: u8) -> Result<u8, String> {
        Ok(self
            .list(name)?
            .map_or(default, |l| l.iter().zip(0..).fold(0, |m, (b, at)| m | b << at)))
    }

    /// Takes a modifier with a list of small numbers as its value.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(value) = self.word(name)? else { return Ok(None) };
        let inner = value.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
        let list = inner.and_then(|v| v.split(',').map(|x| x.trim().parse().ok()).collect());
        list.map(Some).ok_or_else(|| format!("modifier {name}:{value}"))
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.left.first() {
            None => Ok(()),
            Some((name, None)) => Err(format!("modifier {name} is not modelled here")),
            Some((name, Some(value))) => {
                Err(format!("modifier {name}:{value} is not modelled here"))
            }
        }
    }
}

/// A decimal or hexadecimal number with or without a sign.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_refused() {
        let mut modifiers = Modifiers::new(&["offset:16", "clamp"]);
        assert_eq!(modifiers.number("offset"), Ok(Some(16)));
        assert_eq!(modifiers.finish(), Err("modifier clamp is not modelled here".into()));
    }

    #[test]
    fn lists_become_bits() {
        let mut modifiers = Modifiers::new(&["op_sel:[1,0,1]"]);
        assert_eq!(modifiers.bits("op_sel", 0), Ok(5));
        assert_eq!(modifiers.bits("op_sel_hi", 7), Ok(7));
    }
}
