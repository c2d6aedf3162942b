//! The content of messages and of what tools returned.

use serde_json::Value;

use crate::serve::api::error::ApiError;
use crate::serve::api::fields::{Fields, wrong_type};
use crate::serve::api::picture_field::PictureField;
use crate::text::Part;

/// Takes a content: a text or a list of parts.
pub(super) fn take_content(
    item: &mut Fields,
    name: &str,
    pictures: &mut Vec<PictureField>,
) -> Result<Vec<Part>, ApiError> {
    let path = item.path(name);
    match item.take(name) {
        None => Err(item.missing(name)),
        Some(Value::String(text)) => Ok(vec![Part::Text(text)]),
        Some(Value::Array(list)) => {
            let part = |(index, value)| part(&format!("{path}[{index}]"), value, pictures);
            list.into_iter().enumerate().map(part).collect()
        }
        Some(other) => Err(wrong_type(&path, "a string or an array of parts", &other)),
    }
}

fn part(path: &str, value: Value, pictures: &mut Vec<PictureField>) -> Result<Part, ApiError> {
    let mut fields = Fields::of(path, value)?;
    let kind = fields.required_text("type")?;
    let part = match kind.as_str() {
        "input_text" => Part::Text(fields.required_text("text")?),
        "output_text" => {
            // Of a reply, where it is empty.
            if fields.list("annotations")?.is_some_and(|list| !list.is_empty()) {
                let problem = "the prompt has no place for it; leave it out";
                return Err(ApiError::unsupported(&fields.path("annotations"), problem));
            }
            // How likely the text was is no part of it.
            fields.list("logprobs")?;
            Part::Text(fields.required_text("text")?)
        }
        "input_image" => {
            pictures.push(PictureField::take_input(&mut fields)?);
            Part::Picture(pictures.len() - 1)
        }
        _ => {
            let problem = format!("{kind:?} is not supported; send input_text or input_image");
            return Err(ApiError::unsupported(&fields.path("type"), problem));
        }
    };
    fields.finish_knowing(|name| match name {
        "file_id" => Some("no files are kept here; send the picture as a data URL"),
        _ => None,
    })?;
    Ok(part)
}

/// The text of a content of the model itself, which has nothing else.
pub(super) fn text_alone(path: &str, parts: Vec<Part>) -> Result<String, ApiError> {
    let mut texts = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Picture(_) => {
                let problem = "the model sends no pictures; only text is possible here";
                return Err(ApiError::invalid(&format!("{path}[{index}]"), problem));
            }
        }
    }
    Ok(texts.join("\n\n"))
}
