//! Aligned columns of text.

use std::fmt;

/// Rows of cells; the first column is set left, the others right.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                if line.is_empty() {
                    line.push_str(&format!("  {cell:<width$}"));
                } else {
                    line.push_str(&format!("  {cell:>width$}"));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A whole number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in GiB with three decimals, half rounded up, without the unit.
pub(super) fn gib3(bytes: u64) -> String {
    let thousandths = (u128::from(bytes) * 1000 + (1 << 29)) >> 30;
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(510_286_023_000), "510,286,023,000");
        assert_eq!(gib3(1_677_721_600), "1.563");
        assert_eq!(gib3(510_286_023_000), "475.241");
        assert_eq!(gib3(0), "0.000");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["part", "bytes"]);
        table.row(vec!["a".into(), "1,000".into()]);
        table.row(vec!["longer".into(), "1".into()]);
        assert_eq!(table.to_string(), "  part    bytes\n  a       1,000\n  longer      1\n");
    }
}
