//! JSON text in the style that the model was trained on: Python's default dump, non-ASCII kept.
//!
//! Separators are `", "` and `": "`, key order is preserved, floats look as Python prints them.
//! Integers outside 64 bits are floats by the time they get here, as in the hosted model's encoder.

use std::fmt::Write;

use serde_json::{Number, Value};

/// `value` as JSON text.
pub fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write_string(key, text);
                text.push_str(": ");
                write_value(member, text);
            }
            text.push('}');
        }
    }
}

/// A JSON string with its quotes.
fn write_string(string: &str, text: &mut String) {
    text.push('"');
    write_escaped(string, text);
    text.push('"');
}

/// The inside of a JSON string: quotes, backslashes and control characters escaped, nothing else.
pub(super) fn write_escaped(string: &str, text: &mut String) {
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{C}' => text.push_str("\\f"),
            control @ '\0'..='\u{1F}' => {
                write!(text, "\\u{:04x}", u32::from(control)).expect("a string takes any text");
            }
            other => text.push(other),
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    match number.as_f64() {
        Some(float) if number.is_f64() => write_float(float, text),
        _ => write!(text, "{number}").expect("a string takes any text"),
    }
}

/// Shortest digits that read back as `float`, laid out as Python's `repr` does: plain from 1e-4 to
/// below 1e16, else with a signed exponent of at least two digits.
fn write_float(float: f64, text: &mut String) {
    let scientific = format!("{float:e}");
    let (digits, exponent) =
        scientific.split_once('e').expect("the exponent format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let written = if (-4..16).contains(&exponent) {
        write!(text, "{float:?}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(text, "{digits}e{sign}{:02}", exponent.unsigned_abs())
    };
    written.expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::dumps;

    #[test]
    fn floats_look_as_in_python() {
        for (json, text) in [
            ("2.50", "2.5"),
            ("1e3", "1000.0"),
            ("1.0", "1.0"),
            ("-0", "-0.0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e300", "1.5e+300"),
            ("123456789.123", "123456789.123"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("1e-400", "0.0"),
            ("-1.25e-7", "-1.25e-07"),
            ("9007199254740993.0", "9007199254740992.0"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("18446744073709551616", "1.8446744073709552e+19"),
        ] {
            assert_eq!(dumps(&serde_json::from_str(json).unwrap()), text, "{json}");
        }
    }

    #[test]
    fn layout_and_strings() {
        let json = r#"{"b":[],"a":{},"é\u0001\/\n\"\\":[1,{"x":null}],"t":true,"f":false}"#;
        assert_eq!(
            dumps(&serde_json::from_str(json).unwrap()),
            r#"{"b": [], "a": {}, "é\u0001/\n\"\\": [1, {"x": null}], "t": true, "f": false}"#
        );
        assert_eq!(dumps(&"\u{7F}\u{2028}\u{8}\u{C}".into()), "\"\u{7F}\u{2028}\\b\\f\"");
    }
}
