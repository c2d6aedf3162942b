//! The kinds of trial a row has.

/// Where a trial's cases come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The card's own cases, through every property but large offsets.
    Edges,
    /// Random cases, through what depends on data and shape.
    Drawn,
    /// One case behind large offsets.
    Large,
}

impl Kind {
    /// All of them. A row whose cases hold in each has held every property that applies to it.
    pub const ALL: [Kind; 3] = [Kind::Edges, Kind::Drawn, Kind::Large];

    /// As trials and records spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Edges => "edges",
            Kind::Drawn => "prop",
            Kind::Large => "large",
        }
    }
}
