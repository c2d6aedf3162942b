//! `tandem verify --requests` from outside.

mod tandem;

use tandem::tandem;

#[test]
fn the_demo_says_what_it_is_known_to_say() {
    // Drafting is off on the reference device unless asked for.
    let text = tandem(&["verify", "--requests", "--draft-max", "5"]).ok();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.last(), Some(&"requests: passed"), "{text}");
    assert_eq!(lines.len(), 9, "{text}");
    assert!(lines[..8].iter().all(|line| line[25..].starts_with("ok ")), "{text}");
    assert!(text.contains("tokens from the cache"), "{text}");
    assert!(!text.contains("SKIPPED"), "{text}");
}

#[test]
fn what_is_left_out_is_said_and_mistakes_are_refused() {
    let text = tandem(&["verify", "--requests", "--language-model-only", "--prefix-cache", "off"]);
    let text = text.ok();
    assert_eq!(text.matches("SKIPPED").count(), 2, "{text}");
    assert!(text.contains("nothing of the prompt was kept"), "{text}");
    tandem(&["verify"]).refused(2, &["--goldens"]);
    let both = ["verify", "--requests", "--goldens", "tests/goldens"];
    tandem(&both).refused(2, &["--requests", "--goldens"]);
}
