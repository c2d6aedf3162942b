//! What every kernel row owes.

/// A property of the conformance list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Property {
    /// 1: agrees with the card's own arithmetic.
    Agrees,
    /// 2: writes every output byte and no other, reads no stale scratch, leaves inputs alone.
    Guards,
    /// 3: two runs give the same bits.
    Repeats,
    /// 4: a row of data gives the same bits whatever else is in the launch, and on every row of a
    /// ladder.
    Rows,
    /// 5: a captured graph gives the bits of an eager launch, with changed data too.
    Replay,
    /// 6: views with offsets, strides and large offsets give the same bits.
    Views,
    /// 7: indices and counts out of range are masked.
    Strays,
    /// 8: NaN in one row stays in that row.
    Nan,
    /// 9: the table is honest.
    Table,
    /// 10: two streams at once give the same bits.
    Streams,
    /// 11: a fused operator has the bits of its decomposition.
    Steps,
    /// 12: pack then unpack is the identity.
    Pack,
    /// 13: host misuse is a typed error that changes no byte.
    Misuse,
    /// Always: roundings do not lean.
    Bias,
}

impl Property {
    /// The number in the list, and the name.
    pub const fn name(self) -> &'static str {
        match self {
            Property::Agrees => "1 agrees",
            Property::Guards => "2 guards",
            Property::Repeats => "3 repeats",
            Property::Rows => "4 rows",
            Property::Replay => "5 replay",
            Property::Views => "6 views",
            Property::Strays => "7 strays",
            Property::Nan => "8 nan",
            Property::Table => "9 table",
            Property::Streams => "10 streams",
            Property::Steps => "11 steps",
            Property::Pack => "12 pack",
            Property::Misuse => "13 misuse",
            Property::Bias => "bias",
        }
    }
}

/// A property that does not hold, and where it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub property: Property,
    /// Operand, coordinate and values, or the error met.
    pub what: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.property.name(), self.what)
    }
}
