//! A line of the disassembler: `mnemonic operands modifiers // address: words <label>`.

/// The parts of a line that holds an instruction.
pub(crate) struct Line<'a> {
    /// Address of the instruction in the code object.
    pub(crate) pc: u64,
    /// The encoding, in words.
    pub(crate) words: Vec<u32>,
    /// All that stands before the address.
    pub(crate) text: &'a str,
    pub(crate) mnemonic: &'a str,
    /// Operands, separated at commas; modifiers stand behind the last one.
    pub(crate) operands: Vec<&'a str>,
    /// Modifiers, separated at blanks.
    pub(crate) modifiers: Vec<&'a str>,
}

impl<'a> Line<'a> {
    /// The instruction on a line, if there is one.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let (text, comment) = line.strip_prefix('\t')?.rsplit_once("//")?;
        let (address, encoding) = comment.trim().split_once(':')?;
        let pc = u64::from_str_radix(address.trim(), 16).ok()?;
        let words = encoding.split_whitespace().map_while(|w| u32::from_str_radix(w, 16).ok());
        let text = text.trim();
        let (mnemonic, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut operands = split(rest.trim(), |c| c == ',');
        let mut modifiers = Vec::new();
        if let Some(last) = operands.pop() {
            let mut parts = split(last, char::is_whitespace);
            if parts.first().is_some_and(|first| !is_modifier(first)) {
                operands.push(parts.remove(0));
            }
            modifiers = parts;
        }
        Some(Self { pc, words: words.collect(), text, mnemonic, operands, modifiers })
    }

    /// The low half of the first word as a number with a sign: what branches and waits take.
    pub(crate) fn immediate(&self) -> i16 {
        self.words.first().map_or(0, |word| *word as i16)
    }
}

/// Names of modifiers that stand alone and would pass for operands.
const FLAGS: [&str; 14] = [
    "clamp", "gds", "glc", "idxen", "lds", "nt", "offen", "sc0", "sc1", "slc", "scc", "tfe", "lwe",
    "da",
];

fn is_modifier(part: &str) -> bool {
    let name = part.split(':').next().unwrap_or(part);
    part.contains(':') && !name.contains('[') || FLAGS.contains(&part)
}

/// Pieces between separators that stand outside brackets, without blanks around them.
fn split(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut depth, mut from) = (0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            c if depth == 0 && is_separator(c) => {
                pieces.push(text[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(text[from..].trim());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_line() {
        let line = "\tv_pk_fma_f32 v[2:3], v[194:195], -v[152:153], s[2:3] op_sel:[1,0,0] neg_lo:[0,1,0]// 000000002770: D3B04802 1C0B31C2";
        let line = Line::parse(line).expect("an instruction");
        assert_eq!(line.mnemonic, "v_pk_fma_f32");
        assert_eq!(line.operands, ["v[2:3]", "v[194:195]", "-v[152:153]", "s[2:3]"]);
        assert_eq!(line.modifiers, ["op_sel:[1,0,0]", "neg_lo:[0,1,0]"]);
        assert_eq!((line.pc, line.words.len()), (0x2770, 2));
    }

    #[test]
    fn modifiers_without_operands() {
        let line = Line::parse("\tbuffer_wbl2 sc0 sc1    // 0000000033D0: E0A0C000 00000000")
            .expect("an instruction");
        assert!(line.operands.is_empty());
        assert_eq!(line.modifiers, ["sc0", "sc1"]);
    }

    #[test]
    fn labels_and_headings_are_no_instructions() {
        assert!(Line::parse("0000000000001900 <norm_rms__portable>:").is_none());
        let line = Line::parse(
            "\ts_cbranch_scc1 8    // 00000000194C: BF850008 <norm_rms__portable+0x70>",
        );
        assert_eq!(line.expect("an instruction").immediate(), 8);
    }
}
