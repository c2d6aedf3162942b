//! What one kernel needs of a part.

use std::fmt;
use std::str::FromStr;

/// Resources of one kernel, from its code object. As text, a name and `word=value`s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The symbol.
    pub name: String,
    /// Threads of a block at most.
    pub threads: u32,
    /// Vector registers of a lane, those for accumulation among them.
    pub vgprs: u32,
    /// Registers for accumulation among those.
    pub agprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// Local memory of a block, without what a launch adds.
    pub lds_bytes: u32,
    /// Memory of a lane beyond its registers.
    pub scratch_bytes: u32,
    /// Vector registers that are kept in memory at times.
    pub vgpr_spills: u32,
    /// Scalar registers that are kept in lanes of vector registers at times.
    pub sgpr_spills: u32,
    /// Arguments, with what the runtime adds.
    pub kernarg_bytes: u32,
    /// Offset and bytes of each argument.
    pub arguments: Vec<(u32, u32)>,
    /// Rounding of f32, rounding of f64, subnormals of f32 and of f64, two bits each: 0xF0 is to nearest,
    /// with subnormals.
    pub float_mode: u32,
    /// Waves that fit a SIMD.
    pub occupancy: u32,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel { name, threads, vgprs, agprs, sgprs, lds_bytes, scratch_bytes, .. } = self;
        let Kernel { vgpr_spills, sgpr_spills, kernarg_bytes, float_mode, occupancy, .. } = self;
        write!(f, "{name} threads={threads} vgprs={vgprs} agprs={agprs} sgprs={sgprs} ")?;
        write!(
            f,
            "lds_bytes={lds_bytes} scratch_bytes={scratch_bytes} vgpr_spills={vgpr_spills} "
        )?;
        write!(f, "sgpr_spills={sgpr_spills} kernarg_bytes={kernarg_bytes} ")?;
        write!(f, "float_mode={float_mode} occupancy={occupancy} arguments=")?;
        for (i, (offset, bytes)) in self.arguments.iter().enumerate() {
            write!(f, "{}{offset}:{bytes}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(line: &str) -> Result<Kernel, String> {
        let name = line.split(' ').next().unwrap_or_default().to_owned();
        let value = |word: &str| {
            let found = line.split(' ').find_map(|part| part.strip_prefix(word)?.strip_prefix('='));
            found.ok_or_else(|| format!("{line:?} lacks {word}"))
        };
        let number = |word: &str| {
            let found = value(word)?;
            found.parse().map_err(|_| format!("{word}={found} is no number"))
        };
        let argument = |text: &str| {
            let (offset, bytes) = text.split_once(':')?;
            Some((offset.parse().ok()?, bytes.parse().ok()?))
        };
        let list = value("arguments")?;
        let arguments = list.split(',').filter(|text| !text.is_empty()).map(argument);
        let arguments = arguments.collect::<Option<_>>();
        Ok(Kernel {
            name,
            threads: number("threads")?,
            vgprs: number("vgprs")?,
            agprs: number("agprs")?,
            sgprs: number("sgprs")?,
            lds_bytes: number("lds_bytes")?,
            scratch_bytes: number("scratch_bytes")?,
            vgpr_spills: number("vgpr_spills")?,
            sgpr_spills: number("sgpr_spills")?,
            kernarg_bytes: number("kernarg_bytes")?,
            float_mode: number("float_mode")?,
            occupancy: number("occupancy")?,
            arguments: arguments
                .ok_or_else(|| format!("arguments={list} are no offsets and bytes"))?,
        })
    }
}
