//! The plain row of [`AllGather`].

use super::exchange::{Exchange, IMAGE, on_boards};
use crate::ops::prelude::*;
use tandem_hal::{AllGather, Operator};

impl Portable for AllGather {
    const ROW: Option<PortableRow<Self>> = Some(portable(IMAGE, run, on_boards));
}

fn run(d: &AllGather, io: &Arguments<AllGather>, on: &Launcher<'_>) -> Result<()> {
    let (op, collect) = (AllGather::ID, "comm_gather");
    Exchange { op, collect, ranks: d.ranks, width: d.width, x: io.x, y: io.y }.run(on)
}
