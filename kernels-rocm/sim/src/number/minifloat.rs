//! Floating-point numbers of 4, 6 and 8 bits, and powers of two in a byte. Written from the formats' definitions
//! and sharing nothing with what kernels and their reference use.

/// A format: a sign, an exponent and a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minifloat {
    pub(crate) exponent_bits: u32,
    pub(crate) fraction_bits: u32,
    bias: i32,
    special: Special,
}

/// Codes that are no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// There are none.
    None,
    /// All ones is NaN, with either sign.
    LastIsNan,
    /// The highest exponent holds infinities and NaNs.
    Ieee,
    /// Minus zero is the one NaN.
    MinusZeroIsNan,
}

impl Minifloat {
    pub(crate) const E2M1: Self = Self::new(2, 1, 1, Special::None);
    pub(crate) const E2M3: Self = Self::new(2, 3, 1, Special::None);
    pub(crate) const E3M2: Self = Self::new(3, 2, 3, Special::None);

    const fn new(exponent_bits: u32, fraction_bits: u32, bias: i32, special: Special) -> Self {
        Self { exponent_bits, fraction_bits, bias, special }
    }

    /// The 8-bit format with three bits of fraction, in the dialect of the target.
    pub(crate) const fn fp8(fnuz: bool) -> Self {
        match fnuz {
            true => Self::new(4, 3, 8, Special::MinusZeroIsNan),
            false => Self::new(4, 3, 7, Special::LastIsNan),
        }
    }

    /// The 8-bit format with two bits of fraction.
    pub(crate) const fn bf8(fnuz: bool) -> Self {
        match fnuz {
            true => Self::new(5, 2, 16, Special::MinusZeroIsNan),
            false => Self::new(5, 2, 15, Special::Ieee),
        }
    }

    pub(crate) fn bits(self) -> u32 {
        1 + self.exponent_bits + self.fraction_bits
    }

    /// The value of a code.
    pub(crate) fn decode(self, code: u32) -> f64 {
        let magnitude = code & ((1 << (self.bits() - 1)) - 1);
        let is_negative = code >> (self.bits() - 1) & 1 != 0;
        let exponent = (magnitude >> self.fraction_bits) as i32;
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let top = (1 << self.exponent_bits) - 1;
        let size = match self.special {
            Special::MinusZeroIsNan if is_negative && magnitude == 0 => f64::NAN,
            Special::LastIsNan if magnitude == (1 << (self.bits() - 1)) - 1 => f64::NAN,
            Special::Ieee if exponent == top && fraction != 0 => f64::NAN,
            Special::Ieee if exponent == top => f64::INFINITY,
            _ => {
                let leading = if exponent == 0 { 0 } else { 1 << self.fraction_bits };
                let power = exponent.max(1) - self.bias - self.fraction_bits as i32;
                f64::from(leading + fraction) * 2f64.powi(power)
            }
        };
        if is_negative { -size } else { size }
    }

    /// The code of the nearest value, ties to even. What is too large becomes an infinity or NaN, or, where asked
    /// for, the largest value.
    pub(crate) fn encode(self, x: f64, saturate: bool) -> u32 {
        let sign = u32::from(x.is_sign_negative()) << (self.bits() - 1);
        let last = (1u32 << (self.bits() - 1)) - 1;
        let (largest, beyond, nan) = match self.special {
            Special::None => (last, last | sign, last | sign),
            Special::LastIsNan => (last - 1, last | sign, last | sign),
            Special::Ieee => {
                let infinity = last & !((1 << self.fraction_bits) - 1);
                (infinity - 1, infinity | sign, last | sign)
            }
            Special::MinusZeroIsNan => (last, last + 1, last + 1),
        };
        if x.is_nan() {
            return nan;
        }
        let too_large = if saturate { largest | sign } else { beyond };
        if x.is_infinite() {
            return too_large;
        }
        let size = x.abs();
        let lowest = 1 - self.bias;
        let exponent = if size == 0.0 { lowest } else { libm::ilogb(size).max(lowest) };
        let steps = (size * 2f64.powi(self.fraction_bits as i32 - exponent)).round_ties_even();
        // Counted from the binade's first code; a carry leads into the next one.
        let code = (f64::from((exponent - lowest) << self.fraction_bits) + steps).min(1e6) as u32;
        if code > largest {
            return too_large;
        }
        if code == 0 && self.special == Special::MinusZeroIsNan { 0 } else { code | sign }
    }
}

/// The power of two that a byte stands for; NaN for 255.
pub(crate) fn e8m0(byte: u8) -> f64 {
    if byte == 255 { f64::NAN } else { 2f64.powi(i32::from(byte) - 127) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_the_formats_definitions() {
        let fp8 = Minifloat::fp8(false);
        assert_eq!(
            (fp8.decode(0x7e), fp8.decode(0x38), fp8.decode(0x01)),
            (448.0, 1.0, 2f64.powi(-9))
        );
        assert!(fp8.decode(0x7f).is_nan() && fp8.decode(0xff).is_nan());
        let fnuz = Minifloat::fp8(true);
        assert_eq!(
            (fnuz.decode(0x7f), fnuz.decode(0x40), fnuz.decode(0x01)),
            (240.0, 1.0, 2f64.powi(-10))
        );
        assert!(fnuz.decode(0x80).is_nan());
        let bf8 = Minifloat::bf8(false);
        assert_eq!(
            (bf8.decode(0x7b), bf8.decode(0x7c), bf8.decode(0x3c)),
            (57344.0, f64::INFINITY, 1.0)
        );
        assert_eq!(Minifloat::bf8(true).decode(0x7f), 57344.0);
        let fp4: Vec<f64> = (0..8).map(|code| Minifloat::E2M1.decode(code)).collect();
        assert_eq!(fp4, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!((Minifloat::E2M3.decode(0x1f), Minifloat::E3M2.decode(0x1f)), (7.5, 28.0));
    }

    #[test]
    fn every_value_encodes_to_its_own_code() {
        let formats = [
            Minifloat::E2M1,
            Minifloat::E2M3,
            Minifloat::E3M2,
            Minifloat::fp8(false),
            Minifloat::fp8(true),
            Minifloat::bf8(false),
            Minifloat::bf8(true),
        ];
        for format in formats {
            for code in 0..1 << format.bits() {
                let value = format.decode(code);
                if !value.is_nan() {
                    assert_eq!(format.encode(value, false), code, "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn ties_and_limits() {
        let fp8 = Minifloat::fp8(false);
        // Halfway between 1 and 1.125, and between 1.125 and 1.25.
        assert_eq!((fp8.encode(1.0625, false), fp8.encode(1.1875, false)), (0x38, 0x3a));
        assert_eq!((fp8.encode(464.0, false), fp8.encode(465.0, false)), (0x7e, 0x7f));
        assert_eq!((fp8.encode(465.0, true), fp8.encode(-1e9, true)), (0x7e, 0xfe));
        assert_eq!(Minifloat::fp8(true).encode(-1e-9, false), 0);
    }
}
