//! Check values of the draft head, and the rows against each other.

use crate::buffer::{Buffer, alone, draws_agree, edges_agree};
use crate::{Card, Host};
use tandem_hal::{Confidence, ConfidenceIo, Enc, Markov, MarkovIo, Verify};

fn compute<D: Card>(d: &D, io: Host<'_, D>) {
    alone(|context| d.compute(io, context)).expect("nothing to exchange, nothing to fail");
}
fn near(got: &[f32], want: &[f32]) {
    let close = got.iter().zip(want).all(|(g, w)| (g - w).abs() <= 1e-6);
    assert!(close && got.len() == want.len(), "got {got:?}, want {want:?}");
}

/// The embeddings of the worked example, one row a token.
fn embed() -> Buffer {
    Buffer::of(Enc::BF16, &[4, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, -1.0, 0.5])
}

fn markov(previous: &[i32], logits: &[f32]) -> Vec<f32> {
    let tokens = previous.len() as u64;
    let head = Buffer::of(Enc::BF16, &[4, 2], &[0.5, 0.0, 0.0, -1.0, 1.0, 1.0, 0.0, 2.0]);
    let (embed, previous) = (embed(), Buffer::ints(&[tokens], previous));
    let mut logits = Buffer::of(Enc::F32, &[tokens, 4], logits);
    let io = MarkovIo {
        previous: previous.tensor(),
        embed: embed.tensor(),
        head: head.tensor(),
        logits: logits.tensor_mut(),
    };
    compute(&Markov { vocab: 4, rank: 2 }, io);
    logits.values()
}

#[test]
fn the_bias_of_a_drafted_token() {
    let got = markov(&[3, 1], &[1.0, 2.0, 0.5, 0.0, 0.2, 0.1, 1.5, 1.4]);
    near(&got, &[0.5, 1.5, 0.0, 1.0, 0.2, -0.9, 2.5, 3.4]);
    assert_eq!(markov(&[-1, 4], &[7.0; 8]), [7.0; 8], "no token, no bias");
}

/// Confidence logits of the state (0.5, -1, 2) after each token.
fn confidence(weight: &[f32], previous: &[i32]) -> Vec<f32> {
    let tokens = previous.len() as u64;
    let hidden = Buffer::of(Enc::BF16, &[tokens, 3], &[0.5, -1.0, 2.0].repeat(previous.len()));
    let weight = Buffer::of(Enc::BF16, &[1, 5], weight);
    let (embed, previous) = (embed(), Buffer::ints(&[tokens], previous));
    let mut y = Buffer::filled(Enc::F32, &[tokens], 0xA5);
    let io = ConfidenceIo {
        hidden: hidden.tensor(),
        previous: previous.tensor(),
        embed: embed.tensor(),
        weight: weight.tensor(),
        y: y.tensor_mut(),
    };
    compute(&Confidence { width: 3, vocab: 4, rank: 2 }, io);
    y.values()
}

#[test]
fn the_confidence_of_a_draft() {
    // 0.0625 - 0.25 + 0.5, then 0.5 + 0.375 of the embedding where there is one.
    let got = confidence(&[0.125, 0.25, 0.25, -0.5, 0.75], &[3, -1, 4]);
    assert_eq!(got, [1.1875, 0.3125, 0.3125]);
    // Weights of no embedding are not multiplied.
    assert_eq!(confidence(&[1.0, 1.0, 1.0, f32::NAN, 1.0], &[-1]), [1.5]);
    // The worked example's weights are no bf16 values: 2^-9 of terms that add up to 1.65.
    let z = confidence(&[0.1, 0.2, 0.3, -0.4, 0.8], &[3])[0];
    assert!((z - 1.25).abs() <= 1.65 / 512.0, "{z}");
}

#[test]
fn rows_of_every_operator_agree() {
    fn agree<D: Card>() {
        edges_agree::<D>();
        draws_agree::<D>(20);
    }
    agree::<Markov>();
    agree::<Confidence>();
    agree::<Verify>();
}
