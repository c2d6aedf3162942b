//! Descriptors as one printable line that parses back: `gemm.mxfp8{n=48,k=64,out=bf16}`.
//!
//! Reproduction commands, expected-failure lists, traces and corpora hold such lines.

/// A value that prints as part of a descriptor line and parses back from it.
pub trait Line: Sized {
    /// Append the value to `to`.
    fn print(&self, to: &mut String);
    /// The value that `text` spells, or why it is none.
    fn parse(text: &str) -> std::result::Result<Self, String>;
    /// The value as its own line.
    fn line(&self) -> String {
        let mut s = String::new();
        self.print(&mut s);
        s
    }
}

macro_rules! line_by_display {
    ($($t:ty),*) => { $(impl Line for $t {
        fn print(&self, to: &mut String) {
            to.push_str(&self.to_string());
        }
        fn parse(text: &str) -> std::result::Result<Self, String> {
            text.trim().parse().map_err(|_| format!("'{text}' is not a {}", stringify!($t)))
        }
    })* };
}
line_by_display!(u64, u32, bool);

impl<T: Line> Line for Option<T> {
    fn print(&self, to: &mut String) {
        match self {
            None => to.push_str("none"),
            Some(v) => v.print(to),
        }
    }
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.trim() == "none" { Ok(None) } else { T::parse(text).map(Some) }
    }
}

impl<T: Line> Line for Vec<T> {
    fn print(&self, to: &mut String) {
        to.push('[');
        for (i, v) in self.iter().enumerate() {
            if i > 0 {
                to.push(',');
            }
            v.print(to);
        }
        to.push(']');
    }
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let inner = text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let inner = inner.ok_or_else(|| format!("'{text}' is not a [list]"))?;
        split(inner).into_iter().map(T::parse).collect()
    }
}

/// Split at commas outside braces and brackets; nothing for an empty text.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, vec![]);
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

/// The text of field `name` in `{name=value,…}`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> std::result::Result<&'a str, String> {
    let inner = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("'{text}' is not {{name=value,…}}"))?;
    split(inner)
        .into_iter()
        .find_map(|part| part.trim().strip_prefix(name).and_then(|p| p.strip_prefix('=')))
        .ok_or_else(|| format!("field {name} is missing in '{text}'"))
}

/// Declares a descriptor struct: plain data, compared and hashed, printed and parsed as one line.
macro_rules! descriptor {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* pub $field:ident : $t:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name { $($(#[$fmeta])* pub $field: $t),* }
        impl $crate::Line for $name {
            fn print(&self, to: &mut String) {
                to.push('{');
                let mut _first = true;
                $(
                    if !_first { to.push(','); }
                    _first = false;
                    to.push_str(concat!(stringify!($field), "="));
                    $crate::Line::print(&self.$field, to);
                )*
                to.push('}');
            }
            fn parse(text: &str) -> std::result::Result<Self, String> {
                Ok($name { $($field: $crate::Line::parse($crate::line::field(text, stringify!($field))?)?),* })
            }
        }
    };
}

/// Declares an enum of named choices, printed and parsed by name.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum $name { $($(#[$vmeta])* $variant),* }
        impl $name {
            /// Every choice, in order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The name used in lines and tables.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
        impl $crate::Line for $name {
            fn print(&self, to: &mut String) {
                to.push_str(self.name());
            }
            fn parse(text: &str) -> std::result::Result<Self, String> {
                $name::ALL
                    .iter()
                    .copied()
                    .find(|c| c.name() == text.trim())
                    .ok_or_else(|| format!("'{text}' is not one of {}", [$($text),*].join(", ")))
            }
        }
    };
}
