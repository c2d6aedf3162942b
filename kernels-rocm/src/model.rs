//! Boards that are known by name.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tandem_hal::{Capabilities, DeviceId, DeviceInfo, Dialect};

/// Devices are numbered from here, so that they never bear the number of another backend's.
static NEXT: AtomicU64 = AtomicU64::new(3 << 61);

const GIB: u64 = 1 << 30;

/// A board that is sold under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    /// The name, the key of recorded proofs.
    pub(crate) name: &'static str,
    /// What its code is compiled for.
    pub(crate) target: &'static str,
    /// Compute units of a whole board.
    pub(crate) compute_units: u64,
    /// Memory in whole, bytes.
    pub(crate) memory_bytes: u64,
}

const fn model(
    name: &'static str,
    target: &'static str,
    compute_units: u64,
    memory_gib: u64,
) -> Model {
    Model { name, target, compute_units, memory_bytes: memory_gib * GIB }
}

/// Boards with kernels.
const MODELS: [Model; 4] = [
    model("AMD Instinct MI300X", "gfx942", 304, 192),
    model("AMD Instinct MI325X", "gfx942", 304, 256),
    model("AMD Instinct MI350X", "gfx950", 256, 288),
    model("AMD Instinct MI355X", "gfx950", 256, 288),
];

impl Model {
    /// Every one, for messages.
    pub(crate) fn names() -> String {
        MODELS.map(|model| model.name).join(", ")
    }

    /// A board by its whole name.
    pub(crate) fn named(name: &str) -> Option<Model> {
        MODELS.into_iter().find(|model| model.name == name)
    }

    /// Which board it is that the driver calls so; some drivers give no name, and then the numbers must say
    /// which. A part of a board is not the board.
    pub(crate) fn of(
        said: &str,
        target: &str,
        compute_units: u64,
        memory_bytes: u64,
    ) -> Option<Model> {
        let alike = |m: &Model| (m.target, m.compute_units) == (target, compute_units);
        let mut alike = MODELS.into_iter().filter(alike);
        let named = said.split_whitespace().any(|word| word.starts_with("MI"));
        if named {
            return alike.find(|m| said.split_whitespace().any(|word| m.name.ends_with(word)));
        }
        // A driver keeps some of the memory, less than an eighth.
        let holds =
            |m: &Model| memory_bytes <= m.memory_bytes && memory_bytes > m.memory_bytes / 8 * 7;
        let mut fits = alike.filter(holds);
        let first = fits.next();
        if fits.next().is_some() { None } else { first }
    }

    /// Facts of one without a driver.
    pub(crate) fn info(&self, name: String) -> DeviceInfo {
        info(name, self.name.into(), self.target, self.memory_bytes)
    }
}

/// How the names of simulated devices begin, which are as a board is but no board.
const SIMULATED: &str = "simulated ";

/// What the board is called that the driver describes so: its model's name, or what was said with what tells it
/// from the models. A simulated one stays so by name.
pub(crate) fn board_name(
    said: &str,
    target: Option<&str>,
    compute_units: u64,
    memory_bytes: u64,
) -> String {
    if let Some(model) = target.and_then(|t| Model::of(said, t, compute_units, memory_bytes)) {
        let simulated = if said.starts_with(SIMULATED) { SIMULATED } else { "" };
        return format!("{simulated}{}", model.name);
    }
    let said = if said.is_empty() { "a board without a name" } else { said };
    let target = target.unwrap_or("another target");
    format!("{said} ({target}, {compute_units} compute units)")
}

/// Facts of a device, those that follow from its target included.
pub(crate) fn info(name: String, board: String, target: &str, memory_bytes: u64) -> DeviceInfo {
    let cdna4 = target == "gfx950";
    let capabilities = Capabilities {
        // MI300's units read codes whose exponents have another bias, and 0x80 as no number.
        dialect: if cdna4 { Dialect::Fn } else { Dialect::Fnuz },
        fp4_units: cdna4,
        shared_memory_bytes: if cdna4 { 160 << 10 } else { 64 << 10 },
        lanes: 64,
    };
    let id = DeviceId(NEXT.fetch_add(1, Relaxed));
    DeviceInfo {
        id,
        name,
        board,
        arch: target.into(),
        memory_bytes,
        capabilities,
        rank: 0,
        ranks: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_are_known_by_name_or_by_their_numbers() {
        for (said, target, units, memory_gib, board) in [
            ("AMD Instinct MI300X", "gfx942", 304, 191, "AMD Instinct MI300X"),
            ("AMD Instinct MI300X VF", "gfx942", 304, 191, "AMD Instinct MI300X"),
            ("MI325X", "gfx942", 304, 255, "AMD Instinct MI325X"),
            ("", "gfx942", 304, 191, "AMD Instinct MI300X"),
            ("", "gfx942", 304, 255, "AMD Instinct MI325X"),
            ("AMD Radeon Graphics", "gfx942", 304, 255, "AMD Instinct MI325X"),
            ("AMD Instinct MI355X", "gfx950", 256, 287, "AMD Instinct MI355X"),
            ("AMD Instinct MI350X", "gfx950", 256, 287, "AMD Instinct MI350X"),
            ("simulated AMD Instinct MI300X", "gfx942", 304, 2, "simulated AMD Instinct MI300X"),
            // As many units and as much memory: only the name tells them apart.
            ("", "gfx950", 256, 287, "a board without a name (gfx950, 256 compute units)"),
            ("", "gfx942", 304, 100, "a board without a name (gfx942, 304 compute units)"),
            // Parts of boards, and boards of the same target that are others.
            (
                "AMD Instinct MI300X",
                "gfx942",
                38,
                23,
                "AMD Instinct MI300X (gfx942, 38 compute units)",
            ),
            (
                "AMD Instinct MI308X",
                "gfx942",
                80,
                191,
                "AMD Instinct MI308X (gfx942, 80 compute units)",
            ),
            (
                "AMD Instinct MI300A",
                "gfx942",
                304,
                191,
                "AMD Instinct MI300A (gfx942, 304 compute units)",
            ),
        ] {
            assert_eq!(board_name(said, Some(target), units, memory_gib << 30), board, "{said}");
        }
        let other = board_name("AMD Radeon", None, 96, 24 << 30);
        assert_eq!(other, "AMD Radeon (another target, 96 compute units)");
    }

    #[test]
    fn targets_have_their_dialect() {
        for (board, dialect, fp4_units, shared_memory_bytes) in [
            ("AMD Instinct MI300X", Dialect::Fnuz, false, 65_536),
            ("AMD Instinct MI325X", Dialect::Fnuz, false, 65_536),
            ("AMD Instinct MI350X", Dialect::Fn, true, 163_840),
            ("AMD Instinct MI355X", Dialect::Fn, true, 163_840),
        ] {
            let info = Model::named(board).unwrap().info("rocm:0".into());
            let expected = Capabilities { dialect, fp4_units, shared_memory_bytes, lanes: 64 };
            assert_eq!(info.capabilities, expected, "{board}");
        }
    }
}
