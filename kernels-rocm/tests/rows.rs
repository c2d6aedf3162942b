//! The plain rows of all backends, on AMD's parts.

use tandem_portable::Portable;
use tandem_rocm::code_object::find;

/// Looks for the code objects of an operator's plain row; `without` is told of an operator that has none.
fn check<D: Portable>(without: &mut Vec<&'static str>) {
    let Some(row) = D::ROW else { return without.push(D::ID) };
    for target in ["gfx942", "gfx950"] {
        assert!(find(row.image, target).is_some(), "{}: no {} for {target}", D::ID, row.image);
    }
}

macro_rules! check_all {
    ([$without:ident] $($name:ident)*) => { $(check::<tandem_hal::$name>(&mut $without);)* };
}

#[test]
fn every_operator_but_three_has_code_objects_for_both_parts() {
    let mut without = vec![];
    tandem_hal::for_each_operator!([check_all], without);
    // The first runs as its steps; the other two stand on no path of the model.
    assert_eq!(without, ["index.select", "attn.mla_expanded", "attn.mla_absorbed"]);
}
