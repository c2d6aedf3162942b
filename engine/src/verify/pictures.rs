//! Gate G3: pixels, tower and aligner of golden pictures.

use tandem_hal::Lane;

use crate::error::{Error, Result};
use crate::exec::PictureSpan;
use crate::model::v41::vision_tower::{Tower, picture_limits};
use crate::vision::{DecodeLimits, PictureInput};
use crate::weights::Files;

use super::subject::{Subject, bf16_bytes};
use super::{GoldenFile, Limit, Report, relative_distance};

const FEATURES_DISTANCE: f64 = 2.5e-3;
const ALIGNED_DISTANCE: f64 = 1e-4;
/// A picture file next to its golden vectors is no larger.
const PICTURE_LIMIT_BYTES: u64 = 64 << 20;

/// Compare a picture prompt's vision side. `None` for files without a picture; else the picture's
/// rows for the prompt.
///
/// # Errors
/// When the file has tensors of another model, or the device fails.
pub fn compare(
    subject: &Subject,
    tower: Option<&Tower>,
    (files, file): (&Files, &GoldenFile),
    report: &mut Report,
) -> Result<Vec<PictureSpan>> {
    let (name, Some(pixels)) = (file.name(), file.reals("pixels")?) else { return Ok(vec![]) };
    let (Some(tower), Some(grid)) = (tower, file.integers("grid")?) else {
        report.skip(name, None, "a picture, but no vision tower or no grid");
        return Ok(vec![]);
    };
    let grid = (grid.values[0] as u32, grid.values[1] as u32);
    compare_pixels(subject, (files, file), &pixels.values, report)?;
    let patches = bf16_bytes(&pixels.values);
    let lane = subject.lane();
    let lane = Lane { workspace: tower.workspace(), ..lane };
    let features = tower.features(lane, &patches, grid)?;
    if let Some(golden) = file.reals("vision_features")? {
        let distance = relative_distance(&subject.reals(&features)?, &golden.values);
        report.add(
            name,
            None,
            "vision features, rel-L2",
            distance,
            Limit::AtMost(FEATURES_DISTANCE),
        );
        subject.stream().write(&features, &bf16_bytes(&golden.values))?;
        let cells = subject.reals(&tower.align(lane, &features, grid)?)?;
        if let Some(golden) = file.reals("aligned")? {
            let distance = relative_distance(&cells, &golden.values);
            let what = "aligner from golden features, rel-L2";
            report.add(name, None, what, distance, Limit::AtMost(ALIGNED_DISTANCE));
        }
    }
    let span = tower.span(grid);
    let rows = subject.picture_rows().rows(0..span.tokens())?;
    tower.forward(subject.stream(), (&patches, grid), &rows)?;
    let types = file.integers("types")?;
    let start = types.and_then(|t| t.values.iter().position(|kind| *kind >= 0));
    let start = start.ok_or_else(|| Error::Tensor {
        file: name.into(),
        tensor: "types".into(),
        problem: "names no picture position; picture files say where the span starts".into(),
    })?;
    Ok(vec![PictureSpan { start: start as u64, tokens: span.tokens(), first_row: Some(0) }])
}

/// The picture file beside the golden file, prepared by ourselves, against the golden pixels.
fn compare_pixels(
    subject: &Subject,
    (files, file): (&Files, &GoldenFile),
    golden: &[f32],
    report: &mut Report,
) -> Result<()> {
    let picture = format!("{}.png", file.name());
    if !files.contains(&picture) {
        report.skip(file.name(), None, &picture);
        return Ok(());
    }
    let bytes = files.read(&picture, PICTURE_LIMIT_BYTES)?;
    let limits = picture_limits(subject.config())?;
    let input = PictureInput::from_file(&bytes, &DecodeLimits::default(), &limits)
        .map_err(|error| Error::File { file: picture, problem: error.to_string() })?;
    let own: Vec<f32> = input.patches.values().iter().map(|v| v.to_f32()).collect();
    let unequal = if own.len() == golden.len() {
        own.iter().zip(golden).filter(|(a, b)| a != b).count()
    } else {
        golden.len()
    };
    report.add(file.name(), None, "pixels unequal", unequal as f64, Limit::AtMost(0.0));
    Ok(())
}
