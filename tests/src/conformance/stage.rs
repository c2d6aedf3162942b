//! Operands on a device: guarded, loaded from host bytes, and read back whole.

mod build;

use build::Build;
use std::{ops::Range, sync::Arc};
use tandem_hal::{Device, Dir, Enc, Extents, Facts, Operand, Place, Result, Stream, Sym, View};

/// Bytes in front of, behind and between operands.
const BAND: u64 = 512;

/// Where operands lie.
#[derive(Clone, Copy, Default, Debug)]
pub struct Arrangement {
    /// First byte of the operands within their reservation.
    pub base: u64,
    /// Columns left free on either side of rows, and whether the first axis starts late; 0 for dense.
    pub gap: u64,
    /// Rows put in front of every operand whose first axis is this one, in a reservation of its own.
    pub shift: Option<(Sym, u64)>,
}

/// A window of a reservation that is written and read whole.
struct Region {
    window: View,
    /// What it held before the launch.
    before: Vec<u8>,
}

/// An operand's bytes within a region, codes and then scales.
#[derive(Default)]
struct Spot {
    region: usize,
    ranges: Vec<Range<usize>>,
    packed: Option<Packed>,
}

/// A weight in a private layout.
struct Packed {
    plain: View,
    private: View,
    /// Where its private bytes are watched.
    region: usize,
}

/// Every operand of a launch on one device.
pub struct Stage {
    device: Arc<dyn Device>,
    /// Where it is launched.
    pub stream: Box<dyn Stream>,
    /// Operands in order of declaration.
    pub views: Vec<View>,
    /// Scratch.
    pub workspace: View,
    operands: Vec<(&'static str, Dir, Operand)>,
    regions: Vec<Region>,
    spots: Vec<Spot>,
}

/// What a launch left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Bytes of each present output, in order of declaration.
    pub outs: Vec<Vec<u8>>,
    /// The first byte that changed outside the outputs.
    pub trespass: Option<String>,
}

impl Stage {
    /// Room for the operands of `facts` under `extents`.
    ///
    /// # Errors
    /// When the device has no room, or an arrangement does not fit an encoding.
    pub fn new(
        device: &Arc<dyn Device>,
        facts: &Facts,
        extents: &Extents,
        arrangement: Arrangement,
        workspace_bytes: u64,
    ) -> Result<Stage> {
        let mut build = Build::new(device, facts, extents, arrangement)?;
        for (_, _, spec) in &facts.operands {
            build.operand(spec, extents)?;
        }
        let scratch = device.allocate(workspace_bytes + 2 * BAND, Place::Device, "scratch")?;
        let workspace = View::dense(&scratch, BAND, Enc::U8, &[workspace_bytes])?;
        for edge in [0, BAND + workspace_bytes] {
            build.regions.push(Region::of(View::dense(&scratch, edge, Enc::U8, &[BAND])?));
        }
        Ok(Stage {
            device: device.clone(),
            stream: device.stream()?,
            views: build.views,
            workspace,
            operands: facts.operands.clone(),
            regions: build.regions,
            spots: build.spots,
        })
    }

    /// Write the operands, with `fill` in outputs, scratch and everything between.
    ///
    /// # Errors
    /// What the stream returns.
    pub fn load(&mut self, data: &[Vec<u8>], fill: u8) -> Result<()> {
        let mut images: Vec<Vec<u8>> =
            self.regions.iter().map(|r| vec![fill; r.window.bytes() as usize]).collect();
        for ((spot, bytes), (_, dir, _)) in self.spots.iter().zip(data).zip(&self.operands) {
            let mut rest = &bytes[..];
            for range in spot.ranges.iter().filter(|_| *dir != Dir::Out) {
                let (now, later) = rest.split_at(range.len());
                images[spot.region][range.clone()].copy_from_slice(now);
                rest = later;
            }
        }
        for (region, image) in self.regions.iter_mut().zip(images) {
            self.stream.write(&region.window, &image)?;
            region.before = image;
        }
        for packed in self.spots.iter().filter_map(|s| s.packed.as_ref()) {
            for_parts(&packed.plain, |part| {
                let (from, to) = (take(&packed.plain, part)?, take(&packed.private, part)?);
                self.device.pack(&from, &to, &*self.stream)
            })?;
            // The private bytes are inputs as well: what packing left is what must stay.
            let region = &mut self.regions[packed.region];
            region.before = self.stream.read(&region.window)?;
        }
        self.stream.fill(&self.workspace, fill)?;
        self.stream.sync()
    }

    /// Read everything back.
    ///
    /// # Errors
    /// What the stream returns.
    pub fn seen(&self) -> Result<Seen> {
        let after: Vec<Vec<u8>> =
            self.regions.iter().map(|r| self.stream.read(&r.window)).collect::<Result<_>>()?;
        let mut before: Vec<Vec<u8>> = self.regions.iter().map(|r| r.before.clone()).collect();
        let mut outs = vec![];
        for (spot, (_, dir, spec)) in self.spots.iter().zip(&self.operands) {
            if *dir == Dir::In || spec.absent {
                continue;
            }
            let mut bytes = vec![];
            for range in &spot.ranges {
                let now = &after[spot.region][range.clone()];
                bytes.extend_from_slice(now);
                before[spot.region][range.clone()].copy_from_slice(now);
            }
            outs.push(bytes);
        }
        let changed = before.iter().zip(&after).enumerate().find_map(|(i, (b, a))| {
            let at = b.iter().zip(a).position(|(b, a)| b != a)?;
            Some(self.describe(i, at, b[at], a[at]))
        });
        Ok(Seen { outs, trespass: changed })
    }

    /// Names the operand a changed byte belongs to, or the one it lies behind.
    fn describe(&self, region: usize, at: usize, before: u8, after: u8) -> String {
        let mut near = ("the first operand", 0);
        for (spot, (name, ..)) in self.spots.iter().zip(&self.operands) {
            let start = spot.ranges.iter().map(|r| r.start).filter(|s| *s <= at).max();
            let packed = spot.packed.as_ref().is_some_and(|p| p.region == region);
            match start {
                _ if packed => near = (name, at),
                Some(start) if spot.region == region && start >= near.1 => near = (name, start),
                _ => {}
            }
        }
        format!(
            "a byte outside the outputs changed, at or behind {}: 0x{before:02x} to 0x{after:02x}",
            near.0
        )
    }

    /// Whether a packed weight comes back as it was.
    ///
    /// # Errors
    /// What the device returns.
    pub fn round_trip(&self, data: &[Vec<u8>]) -> Result<Option<String>> {
        for (i, spot) in self.spots.iter().enumerate() {
            let Some(Packed { plain, private, .. }) = &spot.packed else { continue };
            let bytes = View::reserved_bytes(plain.enc(), plain.shape());
            let memory = self.device.allocate(bytes, Place::Device, "unpacked")?;
            let back = View::dense(&memory, 0, plain.enc(), plain.shape())?;
            self.stream.fill(&back, 0xA5)?;
            for_parts(plain, |part| {
                let (from, to) = (take(private, part)?, take(&back, part)?);
                self.device.unpack(&from, &to, &*self.stream)
            })?;
            if self.stream.read(&back)? != data[i] {
                let name = self.operands[i].0;
                return Ok(Some(format!("{name} {:?} comes back changed", plain.shape())));
            }
        }
        Ok(None)
    }
}

impl Region {
    fn of(window: View) -> Region {
        Region { window, before: vec![] }
    }
}

/// One part of a stacked weight, or the whole.
fn take(view: &View, part: Option<u64>) -> Result<View> {
    part.map_or_else(|| Ok(view.clone()), |i| view.part(i))
}

/// Call `f` for each part of a stacked weight, or once for a flat one.
fn for_parts(view: &View, mut f: impl FnMut(Option<u64>) -> Result<()>) -> Result<()> {
    if view.shape().len() < 3 {
        return f(None);
    }
    (0..view.shape()[0]).try_for_each(|i| f(Some(i)))
}
