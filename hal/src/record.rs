//! Cache entries: one table of every record that a writer and a reader may agree on.

use crate::Line;

choice! {
    /// What a cache entry of `width` elements looks like inside. All bytes of one entry are
    /// adjacent: codes first, then scales.
    pub enum Form {
        /// `width` E4M3 codes, then one UE8M0 scale per 32 (528 bytes for 512).
        Mxfp8 = "mxfp8",
        /// [`Form::Mxfp8`] in the dialect of gfx942.
        Mxfp8Fnuz = "mxfp8fnuz",
        /// `width` E2M1 codes, then one E4M3 scale per 16 (288 bytes for 512).
        Nvfp4 = "nvfp4",
        /// `width` E2M1 codes, then one UE8M0 scale per 32 (68 bytes for 128).
        Mxfp4 = "mxfp4",
        /// `width` E4M3 codes, then one f32 scale over all of them (132 bytes for 128).
        Fp8 = "fp8",
        /// V4's record: `width - 64` E4M3 codes, 64 bf16 rotary values, one UE8M0 scale per 64
        /// codes and padding to a multiple of eight scales (584 bytes for 512).
        Fp8Rope = "fp8rope",
        /// `width` bf16 values.
        Bf16 = "bf16",
        /// `width` f32 values.
        F32 = "f32",
    }
}

/// Form and width of a cache entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// Arrangement and encodings.
    pub form: Form,
    /// Elements of the vector that an entry stands for.
    pub width: u32,
}

impl Record {
    /// Form and width.
    pub const fn new(form: Form, width: u32) -> Record {
        Record { form, width }
    }
    /// Bytes of one entry.
    pub const fn bytes(self) -> u64 {
        let width = self.width as u64;
        match self.form {
            Form::Mxfp8 | Form::Mxfp8Fnuz => width + width.div_ceil(32),
            Form::Nvfp4 => width / 2 + width.div_ceil(16),
            Form::Mxfp4 => width / 2 + width.div_ceil(32),
            Form::Fp8 => width + 4,
            Form::Fp8Rope => {
                let codes = width.saturating_sub(64);
                codes + 128 + codes.div_ceil(64).next_multiple_of(8)
            }
            Form::Bf16 => width * 2,
            Form::F32 => width * 4,
        }
    }
    /// Elements that must divide `width`.
    pub const fn block(self) -> u64 {
        match self.form {
            Form::Mxfp8 | Form::Mxfp8Fnuz | Form::Mxfp4 => 32,
            Form::Nvfp4 => 16,
            Form::Fp8Rope => 64,
            Form::Fp8 | Form::Bf16 | Form::F32 => 1,
        }
    }
}

impl Line for Record {
    fn print(&self, to: &mut String) {
        to.push_str(&format!("{}:{}", self.form.name(), self.width));
    }
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let bad = || format!("'{text}' is not a record such as mxfp8:512");
        let (form, width) = text.trim().split_once(':').ok_or_else(bad)?;
        Ok(Record { form: Form::parse(form)?, width: width.parse().map_err(|_| bad())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_the_records_in_use() {
        let bytes = |form, width| Record::new(form, width).bytes();
        assert_eq!(bytes(Form::Fp8Rope, 512), 584);
        assert_eq!(bytes(Form::Mxfp8, 512), 528);
        assert_eq!(bytes(Form::Nvfp4, 512), 288);
        assert_eq!(bytes(Form::Fp8, 128), 132);
        assert_eq!(bytes(Form::Mxfp4, 128), 68);
    }

    #[test]
    fn lines_parse_back() {
        for form in Form::ALL {
            let record = Record::new(*form, 512);
            assert_eq!(Record::parse(&record.line()), Ok(record));
        }
        assert!(Record::parse("mxfp8").is_err());
    }
}
