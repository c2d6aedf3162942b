//! Pictures in messages: OpenAI's `image_url` with a data URL, in both its forms, Anthropic's `source`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::error::ApiError;
use super::fields::Fields;
use crate::serve::app::App;
use crate::serve::caller::Caller;
use crate::serve::pictures::PreparedPictures;

/// Kinds of files that are decoded.
const KINDS: [&str; 3] = ["image/png", "image/jpeg", "image/jpg"];

/// A picture as sent.
#[derive(Debug)]
pub(super) struct PictureField {
    /// Where its address is in the body.
    path: String,
    url: String,
}

impl PictureField {
    /// Takes the `image_url` of a part.
    ///
    /// # Errors
    /// 400 for a detail that the model has not: it sees every picture in full.
    pub(super) fn take(part: &mut Fields) -> Result<Self, ApiError> {
        let mut fields = part.object("image_url")?.ok_or_else(|| part.missing("image_url"))?;
        let (path, url) = (fields.path("url"), fields.required_text("url")?);
        take_detail(&mut fields)?;
        fields.finish()?;
        Ok(Self { path, url })
    }

    /// Takes the `image_url` of a part as responses have it: a text.
    ///
    /// # Errors
    /// As [`PictureField::take`].
    pub(super) fn take_input(part: &mut Fields) -> Result<Self, ApiError> {
        let (path, url) = (part.path("image_url"), part.required_text("image_url")?);
        take_detail(part)?;
        Ok(Self { path, url })
    }

    /// Takes the `source` of a block, as Anthropic's protocol has it.
    pub(super) fn take_source(block: &mut Fields) -> Result<Self, ApiError> {
        let mut source = block.object("source")?.ok_or_else(|| block.missing("source"))?;
        let kind = source.required_text("type")?;
        let field = match kind.as_str() {
            "base64" => {
                let media = source.required_text("media_type")?;
                let url = format!("data:{media};base64,{}", source.required_text("data")?);
                Self { path: source.path("data"), url }
            }
            "url" => Self { path: source.path("url"), url: source.required_text("url")? },
            _ => {
                let problem = format!("{kind:?} is not supported; send base64");
                return Err(ApiError::unsupported(&source.path("type"), problem));
            }
        };
        source.finish()?;
        Ok(field)
    }

    /// The bytes of the file.
    fn file(&self) -> Result<Vec<u8>, ApiError> {
        let invalid = |problem: String| ApiError::invalid(&self.path, problem);
        let scheme = |name: &str| {
            self.url.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        let form = "send data:image/png;base64,... or data:image/jpeg;base64,...";
        if !scheme("data:") {
            return Err(invalid(format!("pictures are not fetched from addresses; {form}")));
        }
        let (kind, data) = self.url["data:".len()..]
            .split_once(',')
            .and_then(|(head, data)| Some((head.strip_suffix(";base64")?, data)))
            .ok_or_else(|| invalid(format!("not base64; {form}")))?;
        let media = kind.split(';').next().unwrap_or_default();
        if !KINDS.iter().any(|known| media.eq_ignore_ascii_case(known)) {
            return Err(invalid(format!("{media:?} is neither PNG nor JPEG; {form}")));
        }
        STANDARD.decode(data).map_err(|error| invalid(format!("not base64: {error}; {form}")))
    }
}

/// Takes `detail`: the model sees every picture in full.
fn take_detail(fields: &mut Fields) -> Result<(), ApiError> {
    match fields.text("detail")?.as_deref() {
        None | Some("auto" | "high") => Ok(()),
        Some(other) => {
            let problem =
                format!("{other:?} is not supported; scale the picture down, or use auto or high");
            Err(ApiError::unsupported(&fields.path("detail"), problem))
        }
    }
}

/// Decodes the pictures of a request.
///
/// # Errors
/// 400 naming the picture that cannot be read and why, 429 when the pictures of other requests
/// take all the memory there is for them.
pub(super) fn prepare(
    app: &App,
    fields: Vec<PictureField>,
    caller: &Caller,
) -> Result<PreparedPictures, ApiError> {
    let mut prepared = PreparedPictures::default();
    let Some(first) = fields.first() else { return Ok(prepared) };
    let reading = app.model.pictures.as_ref().filter(|_| app.engine.limits().pictures);
    let Some(reading) = reading else {
        let problem = "the model has no vision tower, or was loaded without it; send text alone";
        return Err(ApiError::unsupported(&first.path, problem));
    };
    let most = app.pictures.most();
    if let Some(field) = fields.get(most) {
        let problem = format!("{} pictures, at most {most} are read; send fewer", fields.len());
        return Err(ApiError::invalid(&field.path, problem));
    }
    for field in fields {
        caller.check_waiting()?;
        let file = field.file()?;
        let input = app.pictures.prepare(&file, &reading.limits);
        let input = input.map_err(|error| ApiError::invalid(&field.path, error.to_string()))?;
        prepared.room.push(app.pictures.hold(&input).ok_or_else(|| app.overloaded())?);
        prepared.inputs.push(input);
    }
    Ok(prepared)
}
