//! A picture in a prompt.

use crate::text::EncodedPrompt;
use crate::vision::PictureInput;
use std::ops::Range;
use std::sync::Arc;

/// A picture and where the prompt has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptPicture {
    /// Position of its span's first token; the whole span carries the image token.
    pub start: u64,
    /// What the vision tower reads.
    pub input: Arc<PictureInput>,
}

impl PromptPicture {
    /// The ids of a prompt with every picture's one token drawn out to its span, and the pictures.
    /// `inputs` are the request's pictures; the prompt may name one more than once.
    ///
    /// # Panics
    /// When the prompt names a picture that is not among them.
    pub fn place(prompt: &EncodedPrompt, inputs: &[Arc<PictureInput>]) -> (Vec<u32>, Vec<Self>) {
        let (mut ids, mut placed) = (Vec::new(), Vec::new());
        let mut copied = 0;
        for place in &prompt.pictures {
            ids.extend(&prompt.ids[copied..place.index]);
            let input = Arc::clone(&inputs[place.picture]);
            let (start, token) = (ids.len() as u64, prompt.ids[place.index]);
            ids.extend(std::iter::repeat_n(token, input.span.tokens() as usize));
            placed.push(Self { start, input });
            copied = place.index + 1;
        }
        ids.extend(&prompt.ids[copied..]);
        (ids, placed)
    }

    /// Positions of the span.
    pub fn positions(&self) -> Range<u64> {
        self.start..self.start + self.input.span.tokens()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::PicturePlace;
    use crate::vision::{Picture, PictureLimits};

    #[test]
    fn every_picture_becomes_its_span() {
        let limits = PictureLimits {
            patch: 1,
            downsample: 1,
            max_image_tokens: 64,
            min_pixels: 0,
            max_wh_ratio: None,
        };
        let input = |width, height| {
            let rgb = vec![0; 3 * (width * height) as usize];
            let picture = Picture::new(width, height, rgb).unwrap();
            Arc::new(PictureInput::from_picture(&picture, &limits).unwrap())
        };
        // Spans of 2 * (1 + 1) + 2 and of 1 * (2 + 1) + 2 tokens.
        let inputs = [input(1, 2), input(2, 1)];
        let at = |index, picture| PicturePlace { index, picture };
        let pictures = vec![at(1, 1), at(2, 0), at(4, 1)];
        let prompt = EncodedPrompt { ids: vec![5, 9, 9, 6, 9], pictures };
        let (ids, placed) = PromptPicture::place(&prompt, &inputs);
        let expected = [vec![5], vec![9; 11], vec![6], vec![9; 5]].concat();
        assert_eq!(ids, expected);
        let spans: Vec<_> = placed.iter().map(PromptPicture::positions).collect();
        assert_eq!(spans, [1..6, 6..12, 13..18]);
    }
}
