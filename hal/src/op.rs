//! What an operator is.

use crate::{Enc, Line, Op, Ref, Result, Steps};
use std::{fmt::Debug, hash::Hash};

choice! {
    /// The dims that vary from launch to launch; everything else is in the descriptor. One value
    /// each per launch, whatever operand it occurs in.
    pub enum Sym {
        /// Rows of data of the step: tokens of all its sequences.
        Tokens = "tokens",
        /// Rows of which logits are wanted.
        Outputs = "outputs",
        /// Sequences, or slots of per-sequence state.
        Sequences = "sequences",
        /// Pages of the compressed caches.
        Pages = "pages",
        /// Pages of the rolling window caches.
        WindowPages = "window_pages",
        /// Pages of the rolling caches of open compressor groups.
        OpenPages = "open_pages",
        /// Pages a sequence's page table can name.
        TablePages = "table_pages",
        /// Compressed entries of the longest sequence of the launch, rounded up.
        Entries = "entries",
        /// Tokens of history that penalties look at.
        History = "history",
        /// Keys of a dense attention, when they are not the rows themselves.
        Keys = "keys",
        /// Merged cells of a picture, or rows to place.
        Cells = "cells",
    }
}

/// How many [`Sym`]s there are.
pub const SYMS: usize = Sym::ALL.len();

/// A value for every [`Sym`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extents([u64; SYMS]);

impl Extents {
    /// From pairs; the others are zero.
    pub fn of(pairs: &[(Sym, u64)]) -> Self {
        let mut extents = Extents::default();
        for &(sym, n) in pairs {
            extents.set(sym, n);
        }
        extents
    }
    /// The value of `sym`.
    pub fn at(&self, sym: Sym) -> u64 {
        self.0[sym as usize]
    }
    /// Set the value of `sym`.
    pub fn set(&mut self, sym: Sym, n: u64) {
        self.0[sym as usize] = n;
    }
    /// The same extents with `sym` at `n`.
    #[must_use]
    pub fn with(mut self, sym: Sym, n: u64) -> Self {
        self.set(sym, n);
        self
    }
}

impl Line for Extents {
    fn print(&self, to: &mut String) {
        let set: Vec<_> = Sym::ALL.iter().filter(|s| self.at(**s) > 0).collect();
        let text: Vec<_> = set.iter().map(|s| format!("{}={}", s.name(), self.at(**s))).collect();
        to.push_str(&format!("{{{}}}", text.join(",")));
    }
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let mut extents = Extents::default();
        for sym in Sym::ALL {
            if let Ok(n) = crate::line::field(text, sym.name()) {
                extents.set(*sym, u64::parse(n)?);
            }
        }
        Ok(extents)
    }
}

/// An extent of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// Fixed by the descriptor.
    Is(u64),
    /// Bound at launch.
    Of(Sym),
}

impl Dim {
    /// The extent under `extents`.
    pub fn at(self, extents: &Extents) -> u64 {
        match self {
            Dim::Is(n) => n,
            Dim::Of(sym) => extents.at(sym),
        }
    }
}

choice! {
    /// What kind of weight: weights of one class, encoding and shape have one layout on a device,
    /// whichever operator or row reads them.
    pub enum Class {
        /// A matrix of a dense linear.
        Dense = "dense",
        /// Stacked matrices of experts, `[experts, n, k]`.
        Experts = "experts",
        /// A table of rows looked up by index.
        Table = "table",
    }
}

/// An exclusive upper bound of index data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexBound {
    /// `Sym x per`: entries of a paged cache, rows of a table.
    Rows(Sym, u64),
    /// A constant.
    Fixed(u64),
}

impl IndexBound {
    /// The bound under `extents`.
    pub fn at(self, extents: &Extents) -> u64 {
        match self {
            IndexBound::Rows(sym, per) => extents.at(sym).saturating_mul(per),
            IndexBound::Fixed(n) => n,
        }
    }
}

/// What data an operand may hold. The conformance suite generates from it; the operator page
/// states it. Device data cannot be checked by the host, so values outside are masked as the page
/// says, never a fault.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Domain {
    /// Any real numbers, NaN and infinities included.
    Real,
    /// Real numbers of magnitude up to this, for operands that the page bounds.
    Within(f32),
    /// Cache bytes that some writer of the same record made.
    Cache,
    /// A weight. [`Class::Dense`] and [`Class::Experts`] may lie in a private layout.
    Weight(Class),
    /// An index, or -1 for none. Anything else outside is treated as none.
    Index {
        /// Exclusive upper bound.
        below: IndexBound,
        /// Whether no index occurs twice (targets of stores).
        distinct: bool,
    },
    /// A count from 0 to the bound. Larger values are treated as the bound, negative ones as 0.
    Count(IndexBound),
    /// A position in a sequence, from 0; negative ones mark padding rows.
    Position,
    /// 0 or 1.
    Flag,
    /// Uniform in [0, 1).
    Uniform,
    /// Rows of non-negative numbers with sum 1 along the last axis.
    Distribution,
    /// Any bytes.
    Bytes,
}

/// Direction of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dir {
    /// Read only.
    In,
    /// Written whole, never read.
    Out,
    /// Read and written in part or in place.
    InOut,
}

/// Specification of one operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Encoding of its bytes.
    pub enc: Enc,
    /// Extents, at most four.
    pub dims: Vec<Dim>,
    /// What it may hold.
    pub domain: Domain,
    /// Whether this descriptor has no such operand: [`crate::View::absent`] is given for it.
    pub absent: bool,
}

impl Operand {
    /// Real numbers of this encoding and shape.
    pub fn new(enc: Enc, dims: &[Dim]) -> Self {
        Operand { enc, dims: dims.to_vec(), domain: Domain::Real, absent: false }
    }
    /// The operand when `present`, else an absent one.
    #[must_use]
    pub fn when(mut self, present: bool) -> Self {
        if !present {
            self.absent = true;
            self.dims = vec![Dim::Is(0)];
        }
        self
    }
    /// With a domain.
    #[must_use]
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = domain;
        self
    }
    /// Indices (`i32`) of this shape.
    pub fn index(dims: &[Dim], below: IndexBound) -> Self {
        Operand::new(Enc::I32, dims).domain(Domain::Index { below, distinct: false })
    }
    /// Extents under `extents`.
    pub fn shape(&self, extents: &Extents) -> Vec<u64> {
        self.dims.iter().map(|d| d.at(extents)).collect()
    }
    /// Bytes of codes and scales under `extents`.
    pub fn bytes(&self, extents: &Extents) -> u64 {
        crate::View::size(self.enc, &self.shape(extents)).map_or(u64::MAX, |(c, s)| c + s)
    }
}

/// Work of one launch, for rooflines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Multiply-adds count as two.
    pub flops: f64,
    /// Bytes that must be read once.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Cost {
    /// Every operand moved once, and `flops`: the floor of an operator without reuse.
    pub fn of<D: Operator>(operator: &D, extents: &Extents, flops: f64) -> Cost {
        let mut cost = Cost { flops, ..Cost::default() };
        for (_, dir, operand) in &Facts::of(operator).operands {
            let bytes = operand.bytes(extents);
            cost.read_bytes += if *dir == Dir::Out { 0 } else { bytes };
            cost.written_bytes += if *dir == Dir::In { 0 } else { bytes };
        }
        cost
    }
}

/// An operand of either side while an [`IoSet`] is taken apart or put together.
#[derive(Clone, Debug)]
pub enum Slot<I, O> {
    /// An input.
    In(I),
    /// An output, or an operand updated in place.
    Out(O),
}

impl<T> Slot<T, T> {
    /// The operand, whichever side it is on.
    pub fn into_inner(self) -> T {
        match self {
            Slot::In(t) | Slot::Out(t) => t,
        }
    }
}

/// The operands of one operator, in order of declaration. Implemented by [`io!`](crate::io) alone.
pub trait IoSet<I, O>: Sized {
    /// Names and directions.
    const NAMES: &'static [(&'static str, Dir)];
    /// Hand out every operand in order.
    fn visit(self, f: &mut dyn FnMut(Slot<I, O>));
    /// Put together from operands in order.
    ///
    /// # Panics
    /// When the iterator yields fewer operands, or another side, than [`IoSet::NAMES`] says.
    fn from_slots(slots: &mut dyn Iterator<Item = Slot<I, O>>) -> Self;
}

/// A descriptor: static sizes and formats only, no token count, so no kernel choice can depend on
/// one.
pub trait Operator: Clone + Eq + Hash + Debug + Line + Send + Sync + Into<Op> + 'static {
    /// `family.name`.
    const ID: &'static str;
    /// The dim whose rows are independent of each other: the unit of row invariance.
    const ROWS: Sym = Sym::Tokens;
    /// Whether every vendor owes a kernel; the others exist in the reference only.
    const CORE: bool = true;
    /// The operands, generic over what holds them.
    type Io<I, O>: IoSet<I, O>;
    /// Whether the fields make sense together.
    ///
    /// # Errors
    /// [`crate::Error::BadDescriptor`] naming the field.
    fn check(&self) -> Result<()>;
    /// Specification of every operand.
    fn operands(&self) -> Self::Io<Operand, Operand>;
    /// Work of a launch.
    fn cost(&self, at: &Extents) -> Cost {
        Cost::of(self, at, 0.0)
    }
    /// A fused operator writes itself as steps over others, with the same roundings.
    fn decompose(&self, _io: Self::Io<Ref, Ref>, _to: &mut Steps) {}
}

/// An operator's operands without its type.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Identifier.
    pub id: &'static str,
    /// The independent rows.
    pub rows: Sym,
    /// Name, direction and specification of each operand, in order.
    pub operands: Vec<(&'static str, Dir, Operand)>,
}

impl Facts {
    /// Of a descriptor.
    pub fn of<D: Operator>(descriptor: &D) -> Facts {
        let names = <D::Io<Operand, Operand> as IoSet<Operand, Operand>>::NAMES;
        let mut operands = Vec::with_capacity(names.len());
        descriptor.operands().visit(&mut |slot| {
            let (name, dir) = names[operands.len()];
            operands.push((name, dir, slot.into_inner()));
        });
        Facts { id: D::ID, rows: D::ROWS, operands }
    }
}

/// Declares the operands of an operator: `io! { pub struct LinearIo { x: In, weight: In, y: Out } }`.
#[macro_export]
macro_rules! io {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* $field:ident : $dir:ident),* $(,)? }) => {
        $(#[$meta])*
        pub struct $name<I, O> { $($(#[$fmeta])* pub $field: $crate::io_type!($dir I O)),* }
        impl<I, O> $crate::IoSet<I, O> for $name<I, O> {
            const NAMES: &'static [(&'static str, $crate::Dir)] =
                &[$((stringify!($field), $crate::Dir::$dir)),*];
            fn visit(self, f: &mut dyn FnMut($crate::Slot<I, O>)) {
                $(f($crate::io_slot!($dir self.$field));)*
            }
            fn from_slots(slots: &mut dyn Iterator<Item = $crate::Slot<I, O>>) -> Self {
                $(let $field = $crate::io_take!($dir slots);)*
                Self { $($field),* }
            }
        }
    };
}

/// Part of [`io!`](crate::io): the side a field is on.
#[doc(hidden)]
#[macro_export]
macro_rules! io_type {
    (In $i:ident $o:ident) => {
        $i
    };
    ($dir:ident $i:ident $o:ident) => {
        $o
    };
}

/// Part of [`io!`](crate::io): wraps a field.
#[doc(hidden)]
#[macro_export]
macro_rules! io_slot {
    (In $e:expr) => {
        $crate::Slot::In($e)
    };
    ($dir:ident $e:expr) => {
        $crate::Slot::Out($e)
    };
}

/// Part of [`io!`](crate::io): unwraps a field.
#[doc(hidden)]
#[macro_export]
macro_rules! io_take {
    (In $slots:ident) => {
        match $slots.next() {
            Some($crate::Slot::In(v)) => v,
            _ => panic!("operands come in the order of their declaration"),
        }
    };
    ($dir:ident $slots:ident) => {
        match $slots.next() {
            Some($crate::Slot::Out(v)) => v,
            _ => panic!("operands come in the order of their declaration"),
        }
    };
}
