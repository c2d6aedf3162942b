//! Cards of the family `quant`.

mod cast;
mod decode;
mod requant;
#[cfg(test)]
mod tests;
