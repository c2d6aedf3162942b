//! The plain row of [`AllReduce`].

use super::exchange::{Exchange, IMAGE, on_boards};
use crate::ops::prelude::*;
use tandem_hal::{AllReduce, Operator};

impl Portable for AllReduce {
    const ROW: Option<PortableRow<Self>> = Some(portable(IMAGE, run, on_boards));
}

fn run(d: &AllReduce, io: &Arguments<AllReduce>, on: &Launcher<'_>) -> Result<()> {
    let (op, collect) = (AllReduce::ID, "comm_sum");
    Exchange { op, collect, ranks: d.ranks, width: d.width, x: io.x, y: io.y }.run(on)
}
