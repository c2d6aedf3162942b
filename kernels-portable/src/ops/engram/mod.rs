//! Plain rows of the `engram` operators.

mod gate;
mod hash;
mod lookup;
