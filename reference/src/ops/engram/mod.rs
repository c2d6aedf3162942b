//! Cards of the family `engram`.

mod gate;
mod hash;
mod lookup;
