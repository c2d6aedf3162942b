//! Looking up keys of a `config.json` that has two layouts and two spellings.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Objects searched in order, each under any of a key's names.
pub(super) struct Keys<'a> {
    objects: Vec<&'a Map<String, Value>>,
}

/// The names of one key: the nested file's first, then the flat file's.
pub(super) type Names<'a> = &'a [&'a str];

impl<'a> Keys<'a> {
    pub(super) fn new(objects: Vec<&'a Map<String, Value>>) -> Self {
        Self { objects }
    }

    /// The value and the name it stands under; `null` counts as absent.
    ///
    /// # Errors
    /// When two spellings or places disagree.
    pub(super) fn find(&self, names: Names<'a>) -> Result<Option<(&'a str, &'a Value)>> {
        let mut found: Option<(&str, &Value)> = None;
        for object in &self.objects {
            for name in names {
                let Some(value) = object.get(*name).filter(|value| !value.is_null()) else {
                    continue;
                };
                match found {
                    None => found = Some((name, value)),
                    Some((_, first)) if first == value => {}
                    Some((other, first)) => {
                        let problem =
                            format!("{value} contradicts {first} under {other}; keep one");
                        return Err(Error::config(name, problem));
                    }
                }
            }
        }
        Ok(found)
    }

    /// The value, which must be there.
    pub(super) fn need(&self, names: Names<'a>) -> Result<(&'a str, &'a Value)> {
        self.find(names)?.ok_or_else(|| {
            let spellings = match names {
                [_, rest @ ..] if !rest.is_empty() => {
                    format!(" (also read as {})", rest.join(", "))
                }
                _ => String::new(),
            };
            Error::config(names[0], format!("missing{spellings}; add it"))
        })
    }

    /// A count, never negative.
    pub(super) fn count(&self, names: Names<'a>) -> Result<usize> {
        as_count(self.need(names)?)
    }

    /// A count that may be absent.
    pub(super) fn count_if_any(&self, names: Names<'a>) -> Result<Option<usize>> {
        self.find(names)?.map(as_count).transpose()
    }

    /// A token id that may be absent.
    pub(super) fn token_if_any(&self, names: Names<'a>) -> Result<Option<u32>> {
        let Some((name, value)) = self.find(names)? else { return Ok(None) };
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.map(Some).ok_or_else(|| Error::config(name, format!("{value} is not a token id")))
    }

    /// A finite number.
    pub(super) fn real(&self, names: Names<'a>) -> Result<f64> {
        as_real(self.need(names)?)
    }

    /// A finite number that may be absent.
    pub(super) fn real_if_any(&self, names: Names<'a>) -> Result<Option<f64>> {
        self.find(names)?.map(as_real).transpose()
    }

    /// A list of counts.
    pub(super) fn counts(&self, names: Names<'a>) -> Result<Vec<usize>> {
        let (name, value) = self.need(names)?;
        let Some(items) = value.as_array() else {
            return Err(Error::config(name, "must be a list of integers"));
        };
        items.iter().map(|item| as_count((name, item))).collect()
    }

    /// A layer number where negative means none.
    pub(super) fn layer_or_none(&self, names: Names<'a>) -> Result<Option<usize>> {
        let (name, value) = self.need(names)?;
        let layer = value
            .as_i64()
            .ok_or_else(|| Error::config(name, format!("{value} is not a layer number")))?;
        Ok(usize::try_from(layer).ok())
    }

    /// A key that this model has in one form only: absent, or one of `allowed`.
    pub(super) fn fixed(&self, names: Names<'a>, allowed: &[Value]) -> Result<()> {
        let Some((name, value)) = self.find(names)? else { return Ok(()) };
        if allowed.contains(value) {
            return Ok(());
        }
        let list = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
        Err(Error::config(name, format!("{value} is not supported; V4.1 has {list}")))
    }

    /// Every key name in sight.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.objects.iter().flat_map(|object| object.keys().map(String::as_str))
    }
}

fn as_count((name, value): (&str, &Value)) -> Result<usize> {
    value
        .as_u64()
        .and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| Error::config(name, format!("{value} is not a non-negative integer")))
}

fn as_real((name, value): (&str, &Value)) -> Result<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite())
        .ok_or_else(|| Error::config(name, format!("{value} is not a number")))
}
