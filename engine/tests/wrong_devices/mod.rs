//! Mistakes that operators make, planted around the arithmetic of a reference device of primitives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tandem_hal::num::bf16;
use tandem_hal::{Enc, Op, Slot, SparseAttention};
use tandem_reference::{Around, Setup, Slots, Tensor};

/// A device of primitives with advice around every launch.
pub fn device(around: Arc<Around>) -> Setup {
    Setup { primitives_only: true, around: Some(around), ..Setup::default() }
}

/// Experts are chosen without the router's bias.
pub fn no_router_bias() -> Arc<Around> {
    Arc::new(|op, slots, _, _, compute| match op {
        Op::Route(route) => replaced(slots, 1, &vec![0.0; route.experts as usize], compute),
        _ => compute(slots),
    })
}

/// Index scores are rounded to bf16.
pub fn bf16_scores() -> Arc<Around> {
    Arc::new(|op, slots, _, _, compute| {
        compute(slots)?;
        if let (Op::Scores(_), Some(Slot::Out(scores))) = (op, slots.last_mut()) {
            for row in 0..scores.rows() {
                let values = scores.read().row(row).into_owned();
                let rounded: Vec<f32> = values.iter().map(|v| bf16::round_f32(*v)).collect();
                scores.set_row_f32(row, &rounded);
            }
        }
        Ok(())
    })
}

/// Casts to `enc` round nothing: linears and index scores read the row that was cast.
pub fn no_cast(enc: Enc) -> Arc<Around> {
    // Found again by what they were rounded to.
    let plain: Mutex<HashMap<Vec<u32>, Vec<f32>>> = Mutex::default();
    let key = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    Arc::new(move |op, slots, _, _, compute| {
        let reads = match op {
            Op::Mxfp8Linear(_) | Op::GateUp(_) | Op::Down(_) => Enc::Q8,
            Op::Scores(_) => Enc::MXFP4,
            Op::Cast(cast) if cast.to == enc => {
                compute(slots)?;
                if let [Slot::In(x), Slot::Out(y)] = slots.as_slice() {
                    let rows =
                        (0..x.rows()).map(|r| (key(&y.read().row(r)), x.row(r).into_owned()));
                    plain.lock().expect("no launch panicked").extend(rows);
                }
                return Ok(());
            }
            _ => return compute(slots),
        };
        if reads != enc {
            return compute(slots);
        }
        let x = input(slots, 0);
        let plain = plain.lock().expect("no launch panicked");
        let original = |r| {
            let row = x.row(r);
            plain.get(&key(&row)).cloned().unwrap_or_else(|| row.into_owned())
        };
        let rows: Vec<f32> = (0..x.rows()).flat_map(original).collect();
        drop(plain);
        replaced(slots, 0, &rows, compute)
    })
}

/// The routing weight scales what the down projection gives instead of what it takes.
pub fn late_routing_weight() -> Arc<Around> {
    let weights: Mutex<Vec<f32>> = Mutex::default();
    Arc::new(move |op, slots, _, _, compute| match op {
        Op::Swiglu(unit) if unit.weighted => {
            let given = values(&input(slots, 1));
            let ones = vec![1.0; given.len()];
            *weights.lock().expect("no launch panicked") = given;
            replaced(slots, 1, &ones, compute)
        }
        Op::Combine(combine) => {
            let mut x = values(&input(slots, 0));
            let weights = weights.lock().expect("no launch panicked").clone();
            for (x, weight) in x.chunks_mut(combine.experts.hidden as usize).zip(weights) {
                x.iter_mut().for_each(|x| *x *= weight);
            }
            replaced(slots, 0, &x, compute)
        }
        _ => compute(slots),
    })
}

/// Attention keeps its probabilities in fp32.
pub fn fp32_probabilities() -> Arc<Around> {
    Arc::new(|op, slots, _, _, compute| {
        compute(slots)?;
        let Op::SparseAttention(d) = op else { return Ok(()) };
        let rows = attended(d, slots);
        if let Slot::Out(y) = &mut slots[6] {
            for (row, values) in rows.iter().enumerate() {
                y.set_row(row, values);
            }
        }
        Ok(())
    })
}

/// Every head's values, rows as those of the output.
fn attended(d: &SparseAttention, slots: &Slots<'_>) -> Vec<Vec<f64>> {
    let [q, window, window_at, selected, selected_at, sink] =
        [0, 1, 2, 3, 4, 5].map(|operand| input(slots, operand));
    let sink = if sink.is_empty() { vec![] } else { values(&sink) };
    let heads = d.heads as usize;
    let mut rows = vec![];
    for t in 0..window_at.rows() {
        let listed = |cache: &Tensor<'_>, at: &Tensor<'_>| -> Vec<Vec<f32>> {
            let at = if at.is_empty() { vec![] } else { at.ints(t) };
            at.into_iter().filter_map(|at| cache.entry(at)).collect()
        };
        let keys = [listed(&window, &window_at), listed(&selected, &selected_at)].concat();
        for h in 0..heads {
            let sink = sink.get(h).map(|s| f64::from(*s));
            rows.push(head(&q.row(t * heads + h), &keys, f64::from(d.scale.value()), sink));
        }
    }
    rows
}

fn head(q: &[f32], keys: &[Vec<f32>], scale: f64, sink: Option<f64>) -> Vec<f64> {
    let product = |(q, k): (&f32, &f32)| f64::from(*q) * f64::from(*k);
    let score = |key: &Vec<f32>| q.iter().zip(key).map(product).sum::<f64>() * scale;
    let scores: Vec<f64> = keys.iter().map(score).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = sink.map_or(0.0, |sink| (sink - largest).exp());
    let mut y = vec![0.0; q.len()];
    for (key, score) in keys.iter().zip(scores) {
        let weight = (score - largest).exp();
        total += weight;
        y.iter_mut().zip(key).for_each(|(y, k)| *y += weight * f64::from(*k));
    }
    // A row that lists nothing, as padding does, has no values.
    if total > 0.0 && !keys.is_empty() {
        y.iter_mut().for_each(|y| *y /= total);
    }
    y
}

fn input<'a>(slots: &Slots<'a>, operand: usize) -> Tensor<'a> {
    match &slots[operand] {
        Slot::In(tensor) => tensor.clone(),
        Slot::Out(_) => panic!("operand {operand} is written"),
    }
}

fn values(tensor: &Tensor<'_>) -> Vec<f32> {
    (0..tensor.rows()).flat_map(|row| tensor.row(row).into_owned()).collect()
}

/// The launch with operand `operand` replaced by fp32 values of the same shape.
fn replaced(
    slots: &mut Slots<'_>,
    operand: usize,
    values: &[f32],
    compute: &mut tandem_reference::Arithmetic<'_>,
) -> tandem_hal::Result<()> {
    let shape = input(slots, operand).shape().to_vec();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut again: Vec<_> = std::mem::take(slots);
    again[operand] = Slot::In(Tensor::dense(Enc::F32, &shape, &bytes, &[]));
    compute(&mut again)
}
