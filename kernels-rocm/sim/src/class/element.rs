//! Types of what a lane holds, and how lanes of them are read and written.

use super::vector::{Destination, Vector};
use crate::fault::FaultKind;
use crate::machine::{Kind, LANES, Source, Wave};

/// A value of one lane.
pub(crate) trait Element: Copy + Default + 'static {
    /// What its bits are.
    const KIND: Kind;

    /// The value that the low bits stand for.
    fn from_bits(bits: u64) -> Self;

    /// The value of every lane.
    #[inline(always)]
    fn fetch(wave: &Wave, source: &Source) -> Result<[Self; LANES], FaultKind> {
        let mut lanes = [Self::default(); LANES];
        let copy;
        let low = match source.register(wave, 0)? {
            Some(register) => register,
            None => {
                copy = source.lanes(wave, 0)?;
                &copy
            }
        };
        if Self::KIND.words() == 2 {
            let copy;
            let high = match source.register(wave, 1)? {
                Some(register) => register,
                None => {
                    copy = source.lanes(wave, 1)?;
                    &copy
                }
            };
            for lane in 0..LANES {
                let bits = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                lanes[lane] = Self::from_bits(bits & source.keep ^ source.flip);
            }
        } else {
            let (keep, flip) = (source.keep as u32, source.flip as u32);
            for lane in 0..LANES {
                lanes[lane] = Self::from_bits(u64::from(low[lane] & keep ^ flip));
            }
        }
        Ok(lanes)
    }
}

/// 32 bits that may be taken for a floating-point number, with its signs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bits(pub(crate) u32);

/// A 16-bit floating-point number.
#[derive(Clone, Copy, Default)]
pub(crate) struct F16(pub(crate) u16);

impl F16 {
    pub(crate) fn to_f32(self) -> f32 {
        half::f16::from_bits(self.0).to_f32()
    }

    /// Rounds to nearest, ties to even.
    pub(crate) fn from_f32(x: f32) -> Self {
        Self(half::f16::from_f32(x).to_bits())
    }

    /// Rounds to nearest, ties to even, once: a sum or product of these is exact in f64, and rounding towards
    /// zero with a mark for what was cut off leaves the second rounding right.
    pub(crate) fn from_f64(x: f64) -> Self {
        let near = x as f32;
        let is_past = f64::from(near).abs() > x.abs();
        let cut = if is_past { f32::from_bits(near.to_bits() - 1) } else { near };
        let marked =
            if f64::from(cut) == x || x.is_nan() { cut } else { f32::from_bits(cut.to_bits() | 1) };
        Self::from_f32(marked)
    }
}

macro_rules! element {
    ($type:ty, $kind:ident, |$bits:ident| $value:expr) => {
        impl Element for $type {
            const KIND: Kind = Kind::$kind;
            #[inline(always)]
            fn from_bits($bits: u64) -> Self {
                $value
            }
        }
    };
}

element!(u16, B16, |bits| bits as u16);
element!(i16, B16, |bits| bits as i16);
element!(F16, F16, |bits| Self(bits as u16));
element!(u32, B32, |bits| bits as u32);
element!(i32, B32, |bits| bits as i32);
element!(Bits, F32, |bits| Self(bits as u32));
element!(f32, F32, |bits| f32::from_bits(bits as u32));
element!(u64, B64, |bits| bits);
element!(i64, I64, |bits| bits as i64);
element!(f64, F64, |bits| f64::from_bits(bits));

impl Element for bool {
    const KIND: Kind = Kind::Mask;

    fn from_bits(bits: u64) -> Self {
        bits != 0
    }

    fn fetch(wave: &Wave, source: &Source) -> Result<[Self; LANES], FaultKind> {
        let mask = source.uniform_pair(wave)?;
        Ok(std::array::from_fn(|lane| mask >> lane & 1 != 0))
    }
}

/// What an instruction gives in each lane.
pub(crate) trait Output: Copy + Default + 'static {
    /// Kind of the vector register's value, if one is written.
    const VECTOR: Option<Kind>;
    /// Whether a mask of lanes is written.
    const MASK: bool;

    /// Writes the active lanes.
    fn store(lanes: &[Self; LANES], wave: &mut Wave, vector: &Vector) -> Result<(), FaultKind>;
}

macro_rules! output {
    ($type:ty, $kind:ident, |$x:ident, $to:ident| $bits:expr) => {
        impl Output for $type {
            const VECTOR: Option<Kind> = Some(Kind::$kind);
            const MASK: bool = false;
            #[inline(always)]
            fn store(
                lanes: &[Self; LANES],
                wave: &mut Wave,
                vector: &Vector,
            ) -> Result<(), FaultKind> {
                let $to = &vector.destination;
                let mut low = [0; LANES];
                let mut high = [0; LANES];
                for (lane, &$x) in lanes.iter().enumerate() {
                    let bits: u64 = $bits;
                    low[lane] = bits as u32;
                    high[lane] = (bits >> 32) as u32;
                }
                let high = (Kind::$kind.words() == 2).then_some(&high);
                vector.write(wave, &low, high)
            }
        }
    };
}

output!(u16, B16, |x, _to| u64::from(x));
output!(i16, B16, |x, _to| u64::from(x as u16));
output!(F16, F16, |x, to| u64::from(to.finished_f16(x).0));
output!(u32, B32, |x, _to| u64::from(x));
output!(i32, B32, |x, _to| u64::from(x as u32));
output!(Bits, B32, |x, _to| u64::from(x.0));
output!(f32, F32, |x, to| u64::from(to.finished_f32(x).to_bits()));
output!(u64, B64, |x, _to| x);
output!(i64, B64, |x, _to| x as u64);
output!(f64, F64, |x, to| to.finished_f64(x).to_bits());

impl Output for bool {
    const VECTOR: Option<Kind> = None;
    const MASK: bool = true;

    fn store(lanes: &[Self; LANES], wave: &mut Wave, vector: &Vector) -> Result<(), FaultKind> {
        let mask = lanes.iter().rev().fold(0, |mask, set| mask << 1 | u64::from(*set));
        vector.write_mask(wave, mask)
    }
}

impl<T: Output> Output for (T, bool) {
    const VECTOR: Option<Kind> = T::VECTOR;
    const MASK: bool = true;

    fn store(lanes: &[Self; LANES], wave: &mut Wave, vector: &Vector) -> Result<(), FaultKind> {
        T::store(&lanes.map(|(value, _)| value), wave, vector)?;
        bool::store(&lanes.map(|(_, set)| set), wave, vector)
    }
}

/// Held within 0 and 1; a NaN becomes 0.
pub(crate) fn within_one(x: f64) -> f64 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

impl Destination {
    /// The result as the modifiers change it: scaled, then held within 0 and 1.
    #[inline(always)]
    fn finished_f32(&self, x: f32) -> f32 {
        if !self.is_modified {
            return x;
        }
        let scaled = x * self.scale as f32;
        if self.clamp { within_one(scaled.into()) as f32 } else { scaled }
    }

    #[inline(always)]
    fn finished_f64(&self, x: f64) -> f64 {
        if !self.is_modified {
            return x;
        }
        let scaled = x * self.scale;
        if self.clamp { within_one(scaled) } else { scaled }
    }

    fn finished_f16(&self, x: F16) -> F16 {
        if !self.is_modified {
            return x;
        }
        let scaled = x.to_f32() * self.scale as f32;
        F16::from_f32(if self.clamp { within_one(scaled.into()) as f32 } else { scaled })
    }
}
