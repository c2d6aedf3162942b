//! Movements between lanes, and between lanes and scalars.

use crate::decode::{Operand, Parts, Value};
use crate::fault::FaultKind;
use crate::machine::{Kind, LANES, Lanes, Source, Step, Wave, blend};

/// A decoded movement.
pub(crate) enum CrossLane {
    /// A word of the first active lane into a scalar.
    ReadFirst { to: u8, from: Source },
    /// A word of a lane into a scalar.
    Read { to: u8, from: Source, lane: Source },
    /// A scalar into a word of a lane.
    Write { to: u16, from: Source, lane: Source },
    /// How many of a mask's lanes are below each lane, in one half of the wave, added to a word.
    CountBelow { to: u16, mask: Source, addend: Source, upper: bool },
    /// Rows of one register exchanged with rows of another: the upper of each pair of `lanes` lanes with the lower.
    Swap { a: u16, b: u16, lanes: usize },
    /// A whole register exchanged with another.
    SwapAll { a: u16, b: u16 },
    /// From the lane that each lane names by a byte address.
    Gather { to: u16, address: u16, from: u16, offset: u32 },
    /// To the lane that each lane names by a byte address.
    Scatter { to: u16, address: u16, from: u16, offset: u32 },
    /// From the lane that a pattern in the instruction names.
    Pattern { to: u16, from: u16, lanes: Box<[u8; LANES]> },
}

fn operand<'a>(parts: &'a Parts<'_>, at: usize) -> Result<&'a Operand, String> {
    parts.operands.get(at).ok_or_else(|| "an operand is missing".to_owned())
}

fn vector(parts: &Parts<'_>, at: usize) -> Result<u16, String> {
    match operand(parts, at)?.plain()? {
        Value::Vector { first, count: 1 } => Ok(first),
        _ => Err("a vector register was expected".into()),
    }
}

fn scalar(parts: &Parts<'_>, at: usize) -> Result<u8, String> {
    match operand(parts, at)?.plain()? {
        Value::Scalar { first, count: 1 } => Ok(first),
        _ => Err("a scalar register was expected".into()),
    }
}

fn word(parts: &Parts<'_>, at: usize) -> Result<Source, String> {
    Source::decode(operand(parts, at)?, Kind::B32)
}

/// Decodes an instruction of this class; none if it is of another.
pub(crate) fn decode(parts: &mut Parts<'_>) -> Result<Option<CrossLane>, String> {
    let (movement, operands) = match parts.name {
        "v_readfirstlane_b32" => {
            (CrossLane::ReadFirst { to: scalar(parts, 0)?, from: word(parts, 1)? }, 2)
        }
        "v_readlane_b32" => (
            CrossLane::Read { to: scalar(parts, 0)?, from: word(parts, 1)?, lane: word(parts, 2)? },
            3,
        ),
        "v_writelane_b32" => (
            CrossLane::Write {
                to: vector(parts, 0)?,
                from: word(parts, 1)?,
                lane: word(parts, 2)?,
            },
            3,
        ),
        "v_mbcnt_lo_u32_b32" | "v_mbcnt_hi_u32_b32" => {
            let upper = parts.name == "v_mbcnt_hi_u32_b32";
            let (to, mask, addend) = (vector(parts, 0)?, word(parts, 1)?, word(parts, 2)?);
            (CrossLane::CountBelow { to, mask, addend, upper }, 3)
        }
        "v_permlane32_swap_b32" => {
            (CrossLane::Swap { a: vector(parts, 0)?, b: vector(parts, 1)?, lanes: 32 }, 2)
        }
        "v_permlane16_swap_b32" => {
            (CrossLane::Swap { a: vector(parts, 0)?, b: vector(parts, 1)?, lanes: 16 }, 2)
        }
        "v_swap_b32" => (CrossLane::SwapAll { a: vector(parts, 0)?, b: vector(parts, 1)? }, 2),
        "ds_bpermute_b32" | "ds_permute_b32" => {
            let offset = parts.modifiers.number("offset")?.unwrap_or(0) as u32;
            let (to, address, from) = (vector(parts, 0)?, vector(parts, 1)?, vector(parts, 2)?);
            match parts.name {
                "ds_permute_b32" => (CrossLane::Scatter { to, address, from, offset }, 3),
                _ => (CrossLane::Gather { to, address, from, offset }, 3),
            }
        }
        "ds_swizzle_b32" => {
            let pattern = parts.modifiers.word("offset")?.unwrap_or("0");
            let lanes = Box::new(swizzled(pattern)?);
            (CrossLane::Pattern { to: vector(parts, 0)?, from: vector(parts, 1)?, lanes }, 2)
        }
        _ => return Ok(None),
    };
    if parts.operands.len() != operands || matches!(parts.encoding, "sdwa" | "dpp") {
        return Err("a form of the instruction that is not modelled".into());
    }
    Ok(Some(movement))
}

/// The lane that each lane reads under a swizzle's pattern; groups of 32 lanes keep to themselves.
fn swizzled(pattern: &str) -> Result<[u8; LANES], String> {
    let wrong = || format!("offset:{pattern}");
    let arguments =
        pattern.strip_prefix("swizzle(").and_then(|p| p.strip_suffix(')')).ok_or_else(wrong)?;
    let mut arguments = arguments.split(',').map(str::trim);
    let mode = arguments.next().ok_or_else(wrong)?;
    let rest: Vec<&str> = arguments.collect();
    let numbers: Vec<usize> = rest.iter().filter_map(|x| x.parse().ok()).collect();
    let from: Box<dyn Fn(usize) -> usize> = match (mode, numbers.as_slice(), rest.as_slice()) {
        ("QUAD_PERM", &[a, b, c, d], _) => {
            Box::new(move |lane| lane & !3 | [a, b, c, d][lane & 3] & 3)
        }
        ("SWAP", &[size], _) if size.is_power_of_two() => Box::new(move |lane| lane ^ size),
        ("REVERSE", &[size], _) if size.is_power_of_two() => {
            Box::new(move |lane| lane ^ (size - 1))
        }
        ("BROADCAST", &[size, at], _) if size.is_power_of_two() => {
            Box::new(move |lane| lane & !(size - 1) | at & (size - 1))
        }
        ("BITMASK_PERM", _, [mask]) if mask.len() == 7 => {
            let bits: Vec<u8> = mask.trim_matches('"').bytes().collect();
            if !bits.iter().all(|b| b"01pi".contains(b)) {
                return Err(wrong());
            }
            Box::new(move |lane| {
                let bit = |(at, rule): (usize, &u8)| match rule {
                    b'0' => 0,
                    b'1' => 1 << (4 - at),
                    b'p' => lane & 1 << (4 - at),
                    _ => !lane & 1 << (4 - at),
                };
                bits.iter().enumerate().map(bit).sum()
            })
        }
        _ => return Err(wrong()),
    };
    Ok(std::array::from_fn(|lane| (lane & 32 | from(lane & 31) & 31) as u8))
}

/// The lane that a byte address names.
fn lane_of(address: u32, offset: u32) -> usize {
    (address.wrapping_add(offset) / 4) as usize % LANES
}

impl CrossLane {
    pub(crate) fn execute(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        let wave = &mut *step.wave;
        let active = wave.active();
        match self {
            Self::ReadFirst { to, from } => {
                let lane = if active == 0 { 0 } else { active.trailing_zeros() as usize };
                let value = from.lanes(wave, 0)?[lane];
                wave.write_scalar(*to, value)
            }
            Self::Read { to, from, lane } => {
                let lane = lane.uniform_word(wave, 0)? as usize % LANES;
                let value = from.lanes(wave, 0)?[lane];
                wave.write_scalar(*to, value)
            }
            Self::Write { to, from, lane } => {
                let lane = lane.uniform_word(wave, 0)? as usize % LANES;
                let value = from.uniform_word(wave, 0)?;
                wave.vector_mut(*to)?[lane] = value;
                Ok(())
            }
            Self::CountBelow { to, mask, addend, upper } => {
                let mut counts = addend.lanes(wave, 0)?;
                let masks = mask.lanes(wave, 0)?;
                for (lane, count) in counts.iter_mut().enumerate() {
                    let below = lane.saturating_sub(if *upper { 32 } else { 0 }).min(32);
                    let low = masks[lane] & ((1u64 << below) - 1) as u32;
                    *count = count.wrapping_add(low.count_ones());
                }
                wave.write_vector(*to, &counts, active)
            }
            Self::Swap { a, b, lanes } => swap(wave, *a, *b, |lane| lane & lanes != 0, *lanes),
            Self::SwapAll { a, b } => {
                let (x, y) = (*wave.vector(*a)?, *wave.vector(*b)?);
                wave.write_vector(*a, &y, active)?;
                wave.write_vector(*b, &x, active)
            }
            Self::Gather { .. } | Self::Scatter { .. } | Self::Pattern { .. } => {
                self.through_lds(step)
            }
        }
    }

    /// Movements that take LDS's way, and are there only behind a wait.
    fn through_lds(&self, step: &mut Step<'_>) -> Result<(), FaultKind> {
        let wave = &mut *step.wave;
        let active = wave.active();
        let mut result: Lanes = [0; LANES];
        let is_active = |lane: usize| active >> lane & 1 != 0;
        let to = match self {
            Self::Gather { to, address, from, offset } => {
                let (addresses, words) = (*wave.vector(*address)?, wave.vector(*from)?);
                for lane in 0..LANES {
                    let other = lane_of(addresses[lane], *offset);
                    result[lane] = if is_active(other) { words[other] } else { 0 };
                }
                *to
            }
            Self::Scatter { to, address, from, offset } => {
                let (addresses, words) = (*wave.vector(*address)?, wave.vector(*from)?);
                for lane in (0..LANES).filter(|lane| is_active(*lane)) {
                    result[lane_of(addresses[lane], *offset)] = words[lane];
                }
                *to
            }
            Self::Pattern { to, from, lanes } => {
                let words = wave.vector(*from)?;
                for lane in 0..LANES {
                    let other = usize::from(lanes[lane]);
                    result[lane] = if is_active(other) { words[other] } else { 0 };
                }
                *to
            }
            _ => return Ok(()),
        };
        step.issue_movement(to)?;
        blend(step.wave.arriving(to), &result, active);
        Ok(())
    }
}

/// Exchanges the upper lanes of `a` with the lower ones of `b`, in each pair of groups.
fn swap(
    wave: &mut Wave,
    a: u16,
    b: u16,
    is_upper: impl Fn(usize) -> bool,
    by: usize,
) -> Result<(), FaultKind> {
    let active = wave.active();
    if active != u64::MAX {
        return Err(FaultKind::InactiveLanes(active));
    }
    let (mut x, mut y) = (*wave.vector(a)?, *wave.vector(b)?);
    for lane in (0..LANES).filter(|lane| !is_upper(*lane)) {
        std::mem::swap(&mut x[lane + by], &mut y[lane]);
    }
    wave.write_vector(a, &x, active)?;
    wave.write_vector(b, &y, active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzles_by_pattern() {
        let swap = swizzled("swizzle(SWAP,4)").expect("a pattern");
        assert_eq!((swap[0], swap[5], swap[37]), (4, 1, 33));
        let mask = swizzled("swizzle(BITMASK_PERM,\"01pip\")").expect("a pattern");
        // Of lane 0b10110: 0, 1, then bit 2, the inverse of bit 1, bit 0.
        assert_eq!(mask[0b10110], 0b01100);
        assert!(swizzled("swizzle(FFT,0)").is_err());
    }
}
