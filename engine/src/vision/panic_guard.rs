//! Panics that are answered as errors, not reported.

use std::cell::Cell;
use std::panic::{self, UnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is answered.
    static ANSWERED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// What `run` gives, or `None` where it panics. Such a panic prints nothing; those of other threads
/// are reported as ever. A panic hook that a program installs after the first call reports them all.
pub(super) fn answered<T>(run: impl FnOnce() -> T + UnwindSafe) -> Option<T> {
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !ANSWERED.get() {
                report(panic);
            }
        }));
    });
    let outer = ANSWERED.replace(true);
    let outcome = catch_unwind(run);
    ANSWERED.set(outer);
    outcome.ok()
}
