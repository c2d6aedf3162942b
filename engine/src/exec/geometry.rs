//! What the sequence engine needs to know of a model.

use crate::model::v41::Config;
use crate::vision::PictureInput;

/// Sizes that decide lists, pages and work; no width of any vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Token ids.
    pub vocab: u64,
    /// Longest prompt plus output, tokens.
    pub context_tokens: u64,
    /// Backbone layers.
    pub layers: u64,
    /// The half of the backbone that some prompt tokens need not visit.
    pub upper: Option<UpperHalf>,
    /// Positions a query's window covers, its own included.
    pub window_tokens: u64,
    /// Token ids of history a row looks at, its own included; 0 for none.
    pub history_tokens: u64,
    /// Tokens of a draft block; 0 without draft stages.
    pub draft_block: u64,
    /// Token that fills the block after the anchor.
    pub noise_token: u32,
    /// Token that ends an answer.
    pub end_token: u32,
    /// What pictures are to it; `None` when it reads none.
    pub pictures: Option<PictureGeometry>,
}

/// What pictures are to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureGeometry {
    /// Token at every position of a span.
    pub token: u32,
    /// Positions of a span at most.
    pub tokens: u64,
    /// Values of a patch.
    pub patch_values: u64,
    /// Patches along a side of the square that one position stands for.
    pub cell_side: u64,
}

/// The layers from the last compressed source on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpperHalf {
    /// The source: the first layer of the half.
    pub first_layer: u64,
    /// Tokens at the end of a prompt that must run through the half for its last logits, the
    /// windows that later tokens read and the draft's context to be exact.
    pub tail_tokens: u64,
}

impl PictureGeometry {
    /// Whether the tower can read a picture that was prepared like this.
    pub(super) fn reads(&self, input: &PictureInput) -> bool {
        let (span, patches) = (input.span, &input.patches);
        let cells = |patches: u32| u64::from(patches).div_ceil(self.cell_side);
        patches.patches() > 0
            && span.tokens() <= self.tokens
            && patches.patch_values() as u64 == self.patch_values
            && cells(patches.patch_rows()) == u64::from(span.rows)
            && cells(patches.patch_columns()) == u64::from(span.columns)
    }
}

impl Geometry {
    /// Of a configuration.
    pub fn of(config: &Config) -> Self {
        let dspark = config.dspark.as_ref();
        Self {
            vocab: config.vocab_size as u64,
            context_tokens: config.max_position_tokens as u64,
            layers: config.layers as u64,
            upper: upper_half(config),
            window_tokens: config.attention.window_tokens as u64,
            history_tokens: config.engram.as_ref().map_or(0, |engram| engram.max_ngram as u64),
            draft_block: dspark.map_or(0, |dspark| dspark.block_size as u64),
            noise_token: dspark.map_or(0, |dspark| dspark.noise_token_id),
            end_token: config.eos_token_id,
            pictures: picture_geometry(config),
        }
    }

    /// Where to begin, without any window, for the windows of all layers to be exact at `tokens`: each
    /// layer's reach back by one less than a window from those above.
    pub fn replay_from(&self, tokens: u64) -> u64 {
        let step = self.window_tokens - 1;
        let below = self.upper.map_or(self.layers - 1, |upper| upper.first_layer) * step;
        let above = self.upper.map_or(self.window_tokens, |upper| upper.tail_tokens);
        tokens.saturating_sub(above + below)
    }

    /// Where the upper half of a prompt of `tokens` begins.
    pub fn upper_from(&self, tokens: u64) -> u64 {
        self.upper.map_or(0, |upper| tokens.saturating_sub(upper.tail_tokens))
    }
}

fn picture_geometry(config: &Config) -> Option<PictureGeometry> {
    let vision = config.vision.as_ref()?;
    Some(PictureGeometry {
        token: config.image_token_id?,
        tokens: vision.max_image_tokens as u64,
        patch_values: 3 * (vision.patch_pixels * vision.patch_pixels) as u64,
        cell_side: vision.downsample as u64,
    })
}

/// The last layer's input is wanted for a whole window (its own latents, and the draft's context);
/// each layer below for a window less one more. No layer below the source may be captured for the
/// draft, since captures are made of the rows of the half.
fn upper_half(config: &Config) -> Option<UpperHalf> {
    let first = *config.compression.kv_sources.last()?;
    let captures = config.dspark.iter().flat_map(|dspark| &dspark.target_layers);
    if captures.min().is_some_and(|lowest| *lowest < first) {
        return None;
    }
    let (window, above) = (config.attention.window_tokens, config.layers - 1 - first);
    let tail_tokens = (window + above * (window - 1)) as u64;
    Some(UpperHalf { first_layer: first as u64, tail_tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_runs_its_upper_half_on_2541_tokens() {
        let geometry = Geometry::of(&Config::named("v4.1-flash").unwrap());
        let upper = UpperHalf { first_layer: 20, tail_tokens: 2541 };
        assert_eq!(geometry.upper, Some(upper));
        assert_eq!((geometry.upper_from(2541), geometry.upper_from(2542)), (0, 1));
        // A window, and one less for each of the other 39 layers.
        assert_eq!(geometry.replay_from(100_000), 100_000 - 5081);
        let whole = Geometry { upper: None, ..geometry.clone() };
        assert_eq!(whole.replay_from(100_000), 100_000 - 5081);
        assert_eq!((geometry.window_tokens, geometry.history_tokens), (128, 4));
        assert_eq!((geometry.draft_block, geometry.noise_token), (5, 128_799));
    }
}
