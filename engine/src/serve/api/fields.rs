//! The fields of a JSON object, taken one by one; whatever is left is an error.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::error::ApiError;

/// An object being read. `null` is the same as absent everywhere.
#[derive(Debug)]
pub(super) struct Fields {
    /// Where the object is in the body; empty for the body itself.
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(path: &str, map: Map<String, Value>) -> Self {
        Self { path: path.to_owned(), map }
    }

    /// The object at `path`.
    pub(super) fn of(path: &str, value: Value) -> Result<Self, ApiError> {
        match value {
            Value::Object(map) => Ok(Self::new(path, map)),
            other => Err(wrong_type(path, "an object", &other)),
        }
    }

    /// Where a field of this object is.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Takes a field of any type.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// A field of any type, which is left for who takes it.
    pub(super) fn peek(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Takes a text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(&self.path(name), "a string", &other)),
        }
    }

    /// Takes a text that must be there.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, ApiError> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Takes a truth value.
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(&self.path(name), "true or false", &other)),
        }
    }

    /// Takes a number within a range.
    pub(super) fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let number = value.as_f64().ok_or_else(|| wrong_type(&path, "a number", &value))?;
        if range.contains(&number) {
            return Ok(Some(number));
        }
        let (least, most) = range.into_inner();
        Err(ApiError::invalid(&path, format!("{value} is not from {least} to {most}")))
    }

    /// Takes a whole number within a range; numbers too large for 64 bits count as the largest.
    pub(super) fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<i128>,
    ) -> Result<Option<i128>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let integer = whole(&value).ok_or_else(|| wrong_type(&path, "a whole number", &value))?;
        if range.contains(&integer) {
            return Ok(Some(integer));
        }
        let (least, most) = range.into_inner();
        let problem = if most >= i128::from(u64::MAX) {
            format!("{value} is below {least}")
        } else {
            format!("{value} is not from {least} to {most}")
        };
        Err(ApiError::invalid(&path, problem))
    }

    /// Takes a whole number of 64 bits, exactly: none stands for another.
    pub(super) fn word(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let path = self.path(name);
        let integer = whole(&value).ok_or_else(|| wrong_type(&path, "a whole number", &value))?;
        // From here on two numbers may be one float.
        let is_exact = value.is_u64() || integer <= 1 << 53;
        match u64::try_from(integer) {
            Ok(word) if is_exact => Ok(Some(word)),
            _ => Err(ApiError::invalid(&path, format!("{value} is not from 0 to {}", u64::MAX))),
        }
    }

    /// Takes a list.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(wrong_type(&self.path(name), "an array", &other)),
        }
    }

    /// Takes an object.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Fields>, ApiError> {
        let path = self.path(name);
        self.take(name).map(|value| Fields::of(&path, value)).transpose()
    }

    /// Every field that is left, in order.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (String, Value)> {
        self.map.into_iter().filter(|(_, value)| !value.is_null())
    }

    /// The error of a field that must be there.
    pub(super) fn missing(&self, name: &str) -> ApiError {
        ApiError::invalid(&self.path(name), "missing; this field is required")
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// A field that nobody took.
    pub(super) fn finish(self) -> Result<(), ApiError> {
        self.finish_knowing(|_| None)
    }

    /// As [`Fields::finish`]; `unsupported` has the reason why a known field is not supported.
    pub(super) fn finish_knowing(
        self,
        unsupported: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<(), ApiError> {
        let Some((name, _)) = self.map.iter().find(|(_, value)| !value.is_null()) else {
            return Ok(());
        };
        let path = self.path(name);
        Err(match unsupported(name) {
            Some(reason) => ApiError::unsupported(&path, reason),
            None => ApiError::unknown(&path),
        })
    }
}

/// The error of a value of another type.
pub(super) fn wrong_type(path: &str, wanted: &str, found: &Value) -> ApiError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "another number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    ApiError::invalid(path, format!("must be {wanted}, not {found}"))
}

/// A whole number, however it is written: `5`, `5.0`, `1e30`.
fn whole(value: &Value) -> Option<i128> {
    if let Some(integer) = value.as_u64() {
        return Some(i128::from(integer));
    }
    if let Some(integer) = value.as_i64() {
        return Some(i128::from(integer));
    }
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    // Beyond 64 bits a number only stands for "very many".
    let most = i128::from(u64::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, then the clamp")]
    let integer = number as i128;
    Some(integer.clamp(-most, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_however_written() {
        for (value, expected) in [
            (json!(5), Some(5)),
            (json!(5.0), Some(5)),
            (json!(-1), Some(-1)),
            (json!(1.5), None),
            (json!("5"), None),
            (json!(true), None),
            (json!(u64::MAX), Some(i128::from(u64::MAX))),
            (json!(1e30), Some(i128::from(u64::MAX))),
        ] {
            assert_eq!(whole(&value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_left_is_named() {
        let body = json!({"a": 1, "b": null, "inner": {"c": 2}});
        let mut fields = Fields::of("", body).unwrap();
        assert_eq!(fields.integer("a", 0..=9).unwrap(), Some(1));
        let inner = fields.object("inner").unwrap().unwrap();
        let error = inner.finish().unwrap_err();
        assert_eq!(error.json()["error"]["param"], "inner.c");
        fields.finish().unwrap();
    }
}
