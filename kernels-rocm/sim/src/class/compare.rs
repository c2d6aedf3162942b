//! Comparisons: a bit for each lane.

use super::element::{Element, F16};
use super::row::{Row, two};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(ordered::<u16>("u16"));
    rows.extend(ordered::<i16>("i16"));
    rows.extend(ordered::<u32>("u32"));
    rows.extend(ordered::<i32>("i32"));
    rows.extend(ordered::<u64>("u64"));
    rows.extend(ordered::<i64>("i64"));
    rows.extend(floating("f16", F16::to_f32));
    rows.extend(floating("f32", |x: f32| x));
    rows.extend(floating("f64", |x: f64| x));
    rows.extend(class("f32", |x: f32, wanted: u32| {
        let is_quiet = x.to_bits() >> 22 & 1 != 0;
        wanted >> class_of(x.classify(), x.is_sign_negative(), is_quiet) & 1 != 0
    }));
    rows.extend(class("f64", |x: f64, wanted: u32| {
        let is_quiet = x.to_bits() >> 51 & 1 != 0;
        wanted >> class_of(x.classify(), x.is_sign_negative(), is_quiet) & 1 != 0
    }));
    rows
}

/// A comparison under its two names: with the result in a mask, and with it as the active lanes too.
fn both<A: Element, B: Element>(
    relation: &str,
    kind: &str,
    holds: impl Fn(A, B) -> bool + Clone + Send + Sync + 'static,
) -> [Row; 2] {
    // Made once for the life of the program.
    let name = |prefix: &str| -> &'static str { format!("{prefix}_{relation}_{kind}").leak() };
    [two(name("v_cmp"), holds.clone()), two(name("v_cmpx"), holds).writes_exec()]
}

fn ordered<T: Element + Ord>(kind: &str) -> Vec<Row> {
    type Holds<T> = fn(T, T) -> bool;
    let relations: [(&str, Holds<T>); 8] = [
        ("f", |_, _| false),
        ("lt", |a, b| a < b),
        ("eq", |a, b| a == b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ne", |a, b| a != b),
        ("ge", |a, b| a >= b),
        ("t", |_, _| true),
    ];
    relations.into_iter().flat_map(|(relation, holds)| both(relation, kind, holds)).collect()
}

/// Relations of numbers that may be NaN: those with an `n` in front hold where the others do not.
fn floating<T: Element, N: PartialOrd + 'static>(kind: &str, number: fn(T) -> N) -> Vec<Row> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    type Holds = fn(Option<std::cmp::Ordering>) -> bool;
    let relations: [(&str, Holds); 16] = [
        ("f", |_| false),
        ("lt", |order| order == Some(Less)),
        ("eq", |order| order == Some(Equal)),
        ("le", |order| matches!(order, Some(Less | Equal))),
        ("gt", |order| order == Some(Greater)),
        ("lg", |order| matches!(order, Some(Less | Greater))),
        ("ge", |order| matches!(order, Some(Greater | Equal))),
        ("o", |order| order.is_some()),
        ("u", |order| order.is_none()),
        ("nge", |order| !matches!(order, Some(Greater | Equal))),
        ("nlg", |order| !matches!(order, Some(Less | Greater))),
        ("ngt", |order| order != Some(Greater)),
        ("nle", |order| !matches!(order, Some(Less | Equal))),
        ("neq", |order| order != Some(Equal)),
        ("nlt", |order| order != Some(Less)),
        ("tru", |_| true),
    ];
    let row = |(relation, holds): (&str, Holds)| {
        both(relation, kind, move |a: T, b: T| holds(number(a).partial_cmp(&number(b))))
    };
    relations.into_iter().flat_map(row).collect()
}

fn class<T: Element>(
    kind: &str,
    holds: impl Fn(T, u32) -> bool + Clone + Send + Sync + 'static,
) -> [Row; 2] {
    both("class", kind, holds)
}

/// The bit of a class: signalling NaN, quiet NaN, then from minus infinity up.
fn class_of(category: std::num::FpCategory, is_negative: bool, is_quiet: bool) -> u32 {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    let size = match category {
        Nan => return u32::from(is_quiet),
        Zero => 0,
        Subnormal => 1,
        Normal => 2,
        Infinite => 3,
    };
    if is_negative { 5 - size } else { 6 + size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_numbered_as_in_the_manual() {
        let class = |x: f32| class_of(x.classify(), x.is_sign_negative(), true);
        let ascending = [f32::NEG_INFINITY, -1.0, -1e-40, -0.0, 0.0, 1e-40, 1.0, f32::INFINITY];
        assert_eq!(ascending.map(class), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(class(f32::NAN), 1);
    }
}
