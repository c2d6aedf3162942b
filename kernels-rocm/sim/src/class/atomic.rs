//! Atomic operations, of memory and of LDS alike.

use super::convert::bf16_from_f32;
use super::element::F16;

/// What an atomic operation makes of a value.
pub(crate) struct Atomic {
    /// The mnemonic without its family.
    name: &'static str,
    /// Size of the value.
    pub(crate) bytes: u32,
    /// Operands that it takes: 1, or 2 where a comparison is made.
    pub(crate) operands: usize,
    /// The new value, of the old one and the operands.
    pub(crate) change: fn(u64, u64, u64) -> u64,
}

const fn row(name: &'static str, bytes: u32, change: fn(u64, u64, u64) -> u64) -> Atomic {
    Atomic { name, bytes, operands: 1, change }
}

fn pair(old: u64, by: u64, sum: impl Fn(u16, u16) -> u16) -> u64 {
    let half = |shift: u32| u64::from(sum((old >> shift) as u16, (by >> shift) as u16)) << shift;
    half(0) | half(16)
}

fn f32_sum(old: u64, by: u64, _: u64) -> u64 {
    u64::from((f32::from_bits(old as u32) + f32::from_bits(by as u32)).to_bits())
}

fn f64_sum(old: u64, by: u64, _: u64) -> u64 {
    (f64::from_bits(old) + f64::from_bits(by)).to_bits()
}

fn bf16_sums(old: u64, by: u64, _: u64) -> u64 {
    let wide = |x: u16| f32::from_bits(u32::from(x) << 16);
    pair(old, by, |x, y| bf16_from_f32(wide(x) + wide(y)))
}

fn f16_sums(old: u64, by: u64, _: u64) -> u64 {
    pair(old, by, |x, y| F16::from_f32(F16(x).to_f32() + F16(y).to_f32()).0)
}

/// The operations that memory and LDS share in meaning, under memory's names.
static MEMORY: [Atomic; 31] = [
    row("swap", 4, |_, by, _| by),
    Atomic {
        operands: 2,
        ..row("cmpswap", 4, |old, new, expected| if old == expected { new } else { old })
    },
    row("add", 4, |old, by, _| u64::from((old as u32).wrapping_add(by as u32))),
    row("sub", 4, |old, by, _| u64::from((old as u32).wrapping_sub(by as u32))),
    row("smin", 4, |old, by, _| u64::from((old as i32).min(by as i32) as u32)),
    row("umin", 4, |old, by, _| old.min(by)),
    row("smax", 4, |old, by, _| u64::from((old as i32).max(by as i32) as u32)),
    row("umax", 4, |old, by, _| old.max(by)),
    row("and", 4, |old, by, _| old & by),
    row("or", 4, |old, by, _| old | by),
    row("xor", 4, |old, by, _| old ^ by),
    row("inc", 4, |old, most, _| if old >= most { 0 } else { old + 1 }),
    row("dec", 4, |old, most, _| if old == 0 || old > most { most } else { old - 1 }),
    row("add_f32", 4, f32_sum),
    row("pk_add_f16", 4, f16_sums),
    row("pk_add_bf16", 4, bf16_sums),
    row("swap_x2", 8, |_, by, _| by),
    Atomic {
        operands: 2,
        ..row("cmpswap_x2", 8, |old, new, expected| if old == expected { new } else { old })
    },
    row("add_x2", 8, |old, by, _| old.wrapping_add(by)),
    row("sub_x2", 8, |old, by, _| old.wrapping_sub(by)),
    row("smin_x2", 8, |old, by, _| (old as i64).min(by as i64) as u64),
    row("umin_x2", 8, |old, by, _| old.min(by)),
    row("smax_x2", 8, |old, by, _| (old as i64).max(by as i64) as u64),
    row("umax_x2", 8, |old, by, _| old.max(by)),
    row("and_x2", 8, |old, by, _| old & by),
    row("or_x2", 8, |old, by, _| old | by),
    row("xor_x2", 8, |old, by, _| old ^ by),
    row("inc_x2", 8, |old, most, _| if old >= most { 0 } else { old + 1 }),
    row("add_f64", 8, f64_sum),
    row("min_f64", 8, |old, by, _| f64::from_bits(old).min(f64::from_bits(by)).to_bits()),
    row("max_f64", 8, |old, by, _| f64::from_bits(old).max(f64::from_bits(by)).to_bits()),
];

/// LDS's names of the same operations.
const LDS: [(&str, &str); 32] = [
    ("wrxchg_rtn_b32", "swap"),
    ("wrxchg_rtn_b64", "swap_x2"),
    ("add_u32", "add"),
    ("sub_u32", "sub"),
    ("min_i32", "smin"),
    ("min_u32", "umin"),
    ("max_i32", "smax"),
    ("max_u32", "umax"),
    ("and_b32", "and"),
    ("or_b32", "or"),
    ("xor_b32", "xor"),
    ("inc_u32", "inc"),
    ("dec_u32", "dec"),
    ("add_f32", "add_f32"),
    ("pk_add_f16", "pk_add_f16"),
    ("pk_add_bf16", "pk_add_bf16"),
    ("add_u64", "add_x2"),
    ("sub_u64", "sub_x2"),
    ("min_i64", "smin_x2"),
    ("min_u64", "umin_x2"),
    ("max_i64", "smax_x2"),
    ("max_u64", "umax_x2"),
    ("and_b64", "and_x2"),
    ("or_b64", "or_x2"),
    ("xor_b64", "xor_x2"),
    ("inc_u64", "inc_x2"),
    ("add_f64", "add_f64"),
    ("min_f64", "min_f64"),
    ("max_f64", "max_f64"),
    ("add_rtn_f32", "add_f32"),
    ("cmpst_b32", "cmpswap"),
    ("cmpst_b64", "cmpswap_x2"),
];

/// The operation under memory's name for it.
pub(crate) fn of_memory(name: &str) -> Option<&'static Atomic> {
    MEMORY.iter().find(|atomic| atomic.name == name)
}

/// The operation under LDS's name for it, and whether that returns what was there.
pub(crate) fn of_lds(name: &str) -> Option<(&'static Atomic, bool)> {
    let returns = name.contains("_rtn_");
    let plain = name.replace("_rtn_", "_");
    let found = LDS.iter().find(|(lds, _)| *lds == name || *lds == plain)?;
    of_memory(found.1).map(|atomic| (atomic, returns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, old: u64, by: u64, other: u64) -> u64 {
        (of_memory(name).expect("a name").change)(old, by, other)
    }

    #[test]
    fn signs_and_widths() {
        assert_eq!(change("add", 0xffff_ffff, 1, 0), 0);
        assert_eq!(change("smin", 0xffff_ffff, 1, 0), 0xffff_ffff);
        assert_eq!(change("umin", 0xffff_ffff, 1, 0), 1);
        assert_eq!(change("cmpswap", 3, 9, 3), 9);
        assert_eq!(change("cmpswap", 3, 9, 4), 3);
        assert_eq!(change("inc", 7, 7, 0), 0);
    }

    #[test]
    fn every_name_of_lds_means_something() {
        for (name, _) in LDS {
            assert!(of_lds(name).is_some(), "{name}");
        }
        assert!(of_lds("max_rtn_u32").is_some_and(|(_, returns)| returns));
    }
}
