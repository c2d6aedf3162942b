//! What the reference computes for a case: the card called on host tensors.

use super::{case::Data, operator};
use tandem_hal::{Dir, Enc, Error, Extents, Facts, Op, Result, Slot, View};
use tandem_reference::{Context, Group, Tensor, TensorMut, compare::Expected};

/// How long ranks wait for each other on the host.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Every rank's outputs, in order of declaration, absent ones left out.
///
/// # Errors
/// What the card returns.
pub fn expected(
    op: &Op,
    facts: &Facts,
    extents: &Extents,
    data: &Data,
) -> Result<Vec<Vec<Expected>>> {
    let group = Group::of(data.len() as u32, PATIENCE);
    let one = |(group, data): (&Group, &Vec<Vec<u8>>)| rank(op, facts, extents, data, group);
    if let ([group], [data]) = (&group[..], &data[..]) {
        return Ok(vec![one((group, data))?]);
    }
    std::thread::scope(|scope| {
        let ranks = group.iter().zip(data).map(|pair| scope.spawn(move || one(pair)));
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|r| r.join().map_err(|_| panicked(op))?).collect()
    })
}

fn panicked(op: &Op) -> Error {
    Error::Unsupported { op: op.id().into(), reason: "the card panicked on a rank".into() }
}

/// Outputs with room for magnitudes, filled with zeros so that what a card forgets differs from what
/// a device was given.
struct Room {
    expected: Expected,
    codes: usize,
    plain: bool,
}

fn rank(
    op: &Op,
    facts: &Facts,
    extents: &Extents,
    data: &[Vec<u8>],
    group: &Group,
) -> Result<Vec<Expected>> {
    let sizes: Vec<(usize, usize)> = facts
        .operands
        .iter()
        .map(|(_, _, spec)| {
            let size = View::size(spec.enc, &spec.shape(extents)).expect("a case fits 64 bits");
            (size.0 as usize, size.1 as usize)
        })
        .collect();
    let mut rooms: Vec<Option<Room>> =
        facts.operands.iter().zip(data).zip(&sizes).map(room).collect();
    let mut slots = vec![];
    for (i, room) in rooms.iter_mut().enumerate() {
        let spec = &facts.operands[i].2;
        let shape = spec.shape(extents);
        let Some(Room { expected, codes, plain }) = room else {
            let (codes, scales) = data[i].split_at(if spec.absent { 0 } else { sizes[i].0 });
            slots.push(Slot::In(Tensor::dense(spec.enc, &shape, codes, scales)));
            continue;
        };
        let (codes, scales) = expected.bytes.split_at_mut(*codes);
        let magnitude = plain.then_some(&mut expected.magnitude[..]);
        let out = TensorMut::dense(spec.enc, &shape, codes, scales, magnitude);
        slots.push(Slot::Out(if *plain { out.with_exact(&mut expected.exact) } else { out }));
    }
    operator::compute(op, slots, &Context { group })?;
    let present = rooms.into_iter().zip(&facts.operands).filter(|(_, (_, _, spec))| !spec.absent);
    Ok(present.filter_map(|(room, _)| Some(room?.expected)).collect())
}

type Slotted<'a> =
    ((&'a (&'static str, Dir, tandem_hal::Operand), &'a Vec<u8>), &'a (usize, usize));

fn room((((_, dir, spec), data), &(codes, scales)): Slotted<'_>) -> Option<Room> {
    let bytes = match dir {
        Dir::In => return None,
        Dir::Out => vec![0; codes + scales],
        Dir::InOut => data.clone(),
    };
    let plain = matches!(spec.enc, Enc::F32 | Enc::BF16);
    let elements = if plain { codes * 8 / spec.enc.unit_bits() as usize } else { 0 };
    let expected =
        Expected { bytes, magnitude: vec![0.0; elements], exact: vec![f64::NAN; elements] };
    Some(Room { expected, codes, plain })
}
