//! Carving the operands of a stage out of device memory.

use super::{Arrangement, BAND, Packed, Region, Spot};
use std::{ops::Range, sync::Arc};
use tandem_hal::{
    Alloc, Class, Device, Dim, Domain, Enc, Extents, Facts, Layout, Operand, Place, Result, View,
};

/// A stage in the making.
pub(super) struct Build<'a> {
    device: &'a Arc<dyn Device>,
    arrangement: Arrangement,
    memory: Arc<Alloc>,
    at: u64,
    pub(super) views: Vec<View>,
    pub(super) regions: Vec<Region>,
    pub(super) spots: Vec<Spot>,
}

impl<'a> Build<'a> {
    pub(super) fn new(
        device: &'a Arc<dyn Device>,
        facts: &Facts,
        extents: &Extents,
        arrangement: Arrangement,
    ) -> Result<Self> {
        let gap = arrangement.gap;
        let operands = facts.operands.iter().map(|(_, _, spec)| spec).filter(|s| !s.absent);
        let bytes =
            |spec: &Operand| View::reserved_bytes(spec.enc, &wide(spec, extents, gap)) + BAND;
        let total = BAND + operands.map(bytes).sum::<u64>();
        let memory = device.allocate(arrangement.base + total, Place::Device, "operands")?;
        let window = View::dense(&memory, arrangement.base, Enc::U8, &[total])?;
        let (views, regions, spots) = (vec![], vec![Region::of(window)], vec![]);
        Ok(Build {
            device,
            arrangement,
            memory,
            at: arrangement.base + BAND,
            views,
            regions,
            spots,
        })
    }

    pub(super) fn operand(&mut self, spec: &Operand, extents: &Extents) -> Result<()> {
        if spec.absent {
            self.views.push(View::absent(spec.enc));
            self.spots.push(Spot::default());
            return Ok(());
        }
        if let Some((sym, rows)) = self.arrangement.shift
            && spec.dims[0] == Dim::Of(sym)
        {
            return self.shifted(spec, extents, rows);
        }
        let shape = spec.shape(extents);
        let wide = wide(spec, extents, self.arrangement.gap);
        let outer = View::dense(&self.memory, self.at, spec.enc, &wide)?;
        self.at += View::reserved_bytes(spec.enc, &wide) + BAND;
        let view = inner(&outer, &shape)?;
        let ranges = ranges(&view, self.arrangement.base);
        match spec.domain {
            Domain::Weight(class) => self.weight(class, view, ranges),
            _ => {
                self.spots.push(Spot { region: 0, ranges, packed: None });
                self.views.push(view);
                Ok(())
            }
        }
    }

    /// A weight in the layout that the device wants, its plain bytes beside it.
    fn weight(&mut self, class: Class, plain: View, ranges: Vec<Range<usize>>) -> Result<()> {
        let (shape, enc) = (plain.shape().to_vec(), plain.enc());
        let stacked = class == Class::Experts && shape.len() > 2;
        let part = if stacked { &shape[1..] } else { &shape[..] };
        let (layout, bytes) = self.device.layout(class, enc, part);
        if layout == Layout::Plain {
            self.spots.push(Spot { region: 0, ranges, packed: None });
            self.views.push(plain);
            return Ok(());
        }
        let bytes = bytes * if stacked { shape[0] } else { 1 };
        let memory = self.device.allocate(bytes + 2 * BAND, Place::Device, "packed weight")?;
        let view = View::private(&memory, BAND, enc, &shape, layout, bytes)?;
        // Its region follows at once, so that the bands around it are watched as well.
        let region = self.regions.len();
        let window = View::dense(&memory, 0, Enc::U8, &[bytes + 2 * BAND])?;
        self.regions.push(Region::of(window));
        let packed = Some(Packed { plain, private: view.clone(), region });
        self.spots.push(Spot { region: 0, ranges, packed });
        self.views.push(view);
        Ok(())
    }

    /// An operand at the far end of a large reservation of its own.
    fn shifted(&mut self, spec: &Operand, extents: &Extents, rows: u64) -> Result<()> {
        let mut shape = spec.shape(extents);
        let own = shape[0];
        shape[0] += rows;
        let bytes = View::reserved_bytes(spec.enc, &shape) + BAND;
        let memory = self.device.allocate(bytes, Place::Device, "large operand")?;
        let view = View::dense(&memory, 0, spec.enc, &shape)?;
        let tail = view.rows(rows..rows + own)?;
        let start = tail.offset() - BAND;
        let region = self.regions.len();
        let window = View::dense(&memory, start, Enc::U8, &[tail.bytes() + 2 * BAND])?;
        self.regions.push(Region::of(window));
        self.spots.push(Spot { region, ranges: ranges(&tail, start), packed: None });
        self.views.push(view);
        Ok(())
    }
}

/// The extents of the tensor that an operand is cut out of.
fn wide(spec: &Operand, extents: &Extents, gap: u64) -> Vec<u64> {
    let mut shape = spec.shape(extents);
    if gap > 0 {
        if by_columns(spec.enc, &shape) && !matches!(spec.domain, Domain::Weight(_)) {
            *shape.last_mut().expect("a shape has an axis") += 2 * gap;
        } else if by_rows(spec.enc, &shape) && !matches!(spec.domain, Domain::Weight(_)) {
            shape[0] += 1;
        }
    }
    shape
}

fn by_columns(enc: Enc, shape: &[u64]) -> bool {
    shape.len() > 1 && matches!(enc, Enc::Plain(e) if e.bits() >= 8)
}

/// Whether a first row can be cut off without cutting a byte or a scale block.
fn by_rows(enc: Enc, shape: &[u64]) -> bool {
    let inner: u64 = shape[1..].iter().product();
    let whole_bytes = (inner * enc.unit_bits()).is_multiple_of(8);
    whole_bytes && !matches!(enc, Enc::Scaled { rows, .. } if rows > 1)
}

/// The operand within its wide tensor.
fn inner(outer: &View, shape: &[u64]) -> Result<View> {
    let (last, wide) = (shape.len() - 1, outer.shape());
    if wide[last] > shape[last] && last > 0 {
        let gap = (wide[last] - shape[last]) / 2;
        return outer.cols(gap..gap + shape[last]);
    }
    if wide[0] > shape[0] { outer.rows(1..wide[0]) } else { Ok(outer.clone()) }
}

/// The bytes of a plain view, from `base` on: its rows of codes, then its scales.
fn ranges(view: &View, base: u64) -> Vec<Range<usize>> {
    if view.is_empty() {
        return vec![];
    }
    let [codes, scales] = view.spans();
    let local = |r: &Range<u64>| (r.start - base) as usize..(r.end - base) as usize;
    if view.is_dense() {
        return [codes, scales].iter().map(local).collect();
    }
    let bits = view.enc().unit_bits();
    let row = view.shape()[view.shape().len() - 1] * bits / 8;
    (0..view.row_count())
        .map(|r| codes.start + r * view.stride() * bits / 8)
        .map(|start| local(&(start..start + row)))
        .collect()
}
