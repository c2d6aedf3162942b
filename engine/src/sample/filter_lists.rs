//! The per-row lists of a filter.

use super::SamplingParameters;
use crate::error::Result;
use crate::exec::Staging;
use tandem_hal::View;

/// What each row is filtered by.
#[derive(Debug, Default)]
pub(crate) struct FilterLists {
    temperature: Vec<f32>,
    top_k: Vec<i32>,
    top_p: Vec<f32>,
    min_p: Vec<f32>,
}

/// The same on the device, `[rows]` each.
pub(crate) struct FilterViews {
    pub(crate) temperature: View,
    pub(crate) top_k: View,
    pub(crate) top_p: View,
    pub(crate) min_p: View,
}

impl FilterLists {
    /// A row of a request.
    pub(crate) fn push(&mut self, parameters: &SamplingParameters, vocab: u64) {
        self.temperature.push(parameters.temperature);
        self.top_k.push(parameters.top_k_limit(vocab));
        self.top_p.push(parameters.top_p);
        self.min_p.push(parameters.min_p);
    }

    /// A row of which the temperature alone counts.
    pub(crate) fn push_tempered(&mut self, temperature: f32) {
        self.temperature.push(temperature);
        self.top_k.push(0);
        self.top_p.push(1.0);
        self.min_p.push(0.0);
    }

    /// Adds greedy rows up to `rows`.
    pub(crate) fn pad(&mut self, rows: u64) {
        while (self.temperature.len() as u64) < rows {
            self.push_tempered(0.0);
        }
    }

    pub(crate) fn stage(&self, to: &mut Staging) -> Result<FilterViews> {
        let rows = [self.temperature.len() as u64];
        Ok(FilterViews {
            temperature: to.f32(&self.temperature, &rows)?,
            top_k: to.i32(&self.top_k, &rows)?,
            top_p: to.f32(&self.top_p, &rows)?,
            min_p: to.f32(&self.min_p, &rows)?,
        })
    }
}
