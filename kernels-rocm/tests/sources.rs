//! What no kernel source may say.

use std::fs;
use std::path::Path;

/// Arguments of `__builtin_bit_cast` in a text.
fn bit_casts(text: &str) -> Vec<&str> {
    let begun = text.match_indices("__builtin_bit_cast(").map(|(at, name)| at + name.len());
    let argument = |from: usize| {
        let mut depth = 1;
        let end = text[from..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        &text[from..from + end.expect("parentheses close")]
    };
    begun.map(argument).collect()
}

/// clang reads element 0 of a vector for `__builtin_bit_cast(T, vector[i])`, whatever `i` is. An element that was
/// passed as a parameter is safe.
fn casts_an_element(argument: &str) -> bool {
    argument.contains('[')
}

#[test]
fn no_element_of_a_vector_is_cast_in_place() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> = fs::read_dir(workspace)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("kernels"))
        .filter(|path| path.is_dir())
        .collect();
    assert!(folders.len() >= 2, "{folders:?}");
    let mut casts = 0;
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for argument in bit_casts(&text) {
                casts += 1;
                assert!(!casts_an_element(argument), "{}: {argument}", path.display());
            }
        }
    }
    assert!(casts >= 4, "{casts}");
}

#[test]
fn the_pattern_is_found() {
    let text = "f(__builtin_bit_cast(u32, (x + y)), __builtin_bit_cast(float,\n vec[i % 4]));";
    let found = bit_casts(text);
    assert_eq!(found, ["u32, (x + y)", "float,\n vec[i % 4]"]);
    assert_eq!(found.into_iter().map(casts_an_element).collect::<Vec<_>>(), [false, true]);
}
