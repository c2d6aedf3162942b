//! What the assembler says of each kernel.

/// Resources of one entry function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) registers: u32,
    pub(crate) shared_bytes: u32,
}

/// The entries of a compilation's report.
///
/// # Errors
/// A warning, a spill, local memory, or a report that reads otherwise than expected.
pub(crate) fn entries(report: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = vec![];
    for line in report.lines() {
        if line.contains("warning") {
            return Err(line.to_owned());
        }
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            entries.push(Entry { name, registers: 0, shared_bytes: 0 });
            continue;
        }
        if line.contains("bytes stack frame") {
            let sizes = ["stack frame", "spill stores", "spill loads"];
            if sizes.into_iter().any(|what| number(line, &format!(" bytes {what}")) != Some(0)) {
                return Err(format!("local memory or spills: {}", line.trim()));
            }
        }
        if let (Some(registers), Some(entry)) = (number(line, " registers"), entries.last_mut()) {
            entry.registers = registers;
            entry.shared_bytes = number(line, " bytes smem").unwrap_or(0);
        }
    }
    if entries.is_empty() || entries.iter().any(|e| e.registers == 0) {
        return Err(format!("the assembler's report is not understood:\n{report}"));
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The number in front of `what`.
fn number(line: &str, what: &str) -> Option<u32> {
    let before = line.split(what).next().filter(|before| before.len() < line.len())?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
