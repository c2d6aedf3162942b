//! Numbers that the matrix units of a board and of the emulator multiply.

/// Rows, columns and the bytes of a row of a product.
const ROWS: usize = 64;
const COLUMNS: usize = 8;
const DEPTH_BYTES: usize = 32;

/// How the numbers of a case are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Magnitudes about one.
    Plain,
    /// Exponents all over the format, of the accumulators over 24 binades.
    Wide,
    /// Any code that is a number.
    Any,
    /// Subnormal factors against all exponents.
    Subnormal,
    /// Products far below the accumulators.
    Small,
    /// Infinities and NaN among the rest.
    NoNumbers,
}

/// All of them.
pub(crate) const KINDS: [Kind; 6] =
    [Kind::Plain, Kind::Wide, Kind::Any, Kind::Subnormal, Kind::Small, Kind::NoNumbers];

/// A format of factors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Its name in kernels and files.
    pub(crate) name: &'static str,
    bytes: usize,
    fraction_bits: u32,
    exponent_bits: u32,
}

/// All of them.
pub(crate) const FORMATS: [Format; 3] = [
    Format { name: "e4m3", bytes: 1, fraction_bits: 3, exponent_bits: 4 },
    Format { name: "bf16", bytes: 2, fraction_bits: 7, exponent_bits: 8 },
    Format { name: "f16", bytes: 2, fraction_bits: 10, exponent_bits: 5 },
];

/// Operands of one case of each kind after the other.
pub(crate) struct Cases {
    /// Factors of the rows.
    pub(crate) a: Vec<u8>,
    /// Factors of the columns.
    pub(crate) b: Vec<u8>,
    /// Accumulators before.
    pub(crate) c: Vec<f32>,
}

impl Cases {
    /// The cases of a format.
    pub(crate) fn of(format: Format) -> Cases {
        let mut random = Random(format.name.len() as u64 + u64::from(format.fraction_bits));
        let mut cases = Cases { a: vec![], b: vec![], c: vec![] };
        for kind in KINDS {
            let per = DEPTH_BYTES / format.bytes;
            for _ in 0..ROWS * per {
                cases.a.extend(format.factor(kind, true, &mut random));
            }
            for _ in 0..COLUMNS * per {
                cases.b.extend(format.factor(kind, false, &mut random));
            }
            cases.c.extend((0..ROWS * COLUMNS).map(|_| accumulator(kind, &mut random)));
        }
        cases
    }
}

impl Format {
    fn factor(self, kind: Kind, of_row: bool, random: &mut Random) -> impl Iterator<Item = u8> {
        let top = (1 << self.exponent_bits) - 1;
        let bias = top / 2;
        let exponent = match kind {
            Kind::Plain | Kind::NoNumbers => bias - 2 + random.below(4),
            Kind::Wide => bias.saturating_sub(6).max(1) + random.below(12).min(top - 1 - bias),
            Kind::Any => random.below(top),
            Kind::Subnormal if of_row => 0,
            Kind::Subnormal => bias + random.below(top - bias),
            Kind::Small => bias - 6 + random.below(3),
        };
        let mut code = exponent << self.fraction_bits | random.below(1 << self.fraction_bits);
        if kind == Kind::NoNumbers && random.below(64) == 0 {
            code = match (self.name, random.below(2)) {
                ("e4m3", _) => 0x7F,
                (_, 0) => top << self.fraction_bits,
                _ => top << self.fraction_bits | 1,
            };
        }
        code |= random.below(2) << (8 * self.bytes as u32 - 1);
        code.to_le_bytes().into_iter().take(self.bytes)
    }
}

fn accumulator(kind: Kind, random: &mut Random) -> f32 {
    let mut exponent = |least: u32, binades| least + random.below(binades);
    let exponent = match kind {
        Kind::Plain | Kind::NoNumbers => exponent(125, 4),
        Kind::Wide => exponent(115, 24),
        Kind::Any => exponent(1, 250),
        Kind::Subnormal => exponent(90, 40),
        Kind::Small => exponent(130, 10),
    };
    if random.below(16) == 0 {
        return 0.0;
    }
    let sign = random.below(2) << 31;
    f32::from_bits(sign | exponent << 23 | random.below(1 << 23))
}

/// Whether two results are the same number, or both none.
pub(crate) fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// What a file of results holds.
pub(crate) fn results(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u64::from((self.0 >> 32) as u32) * u64::from(limit)) >> 32) as u32
    }
}
