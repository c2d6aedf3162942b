//! Sets of buffers with one row per token.

/// Declares a set of buffers that are cut to a step's rows together.
macro_rules! buffers {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* $field:ident),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name { $($(#[$fmeta])* pub $field: ::tandem_hal::View),* }

        impl $name {
            /// The first `rows` rows of every buffer.
            ///
            /// # Errors
            /// When there are fewer.
            pub fn rows(&self, rows: u64) -> ::tandem_hal::Result<Self> {
                Ok(Self { $($field: self.$field.rows(0..rows)?),* })
            }
        }
    };
}
