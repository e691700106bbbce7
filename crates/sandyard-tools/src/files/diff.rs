//! Telling what was changed.

use std::time::Duration;

use similar::TextDiff;

/// Most characters of one diff.
const MAX_DIFF: usize = 8_000;
/// After this long a diff is given as it is, which is right but not the shortest. Tests look for the shortest, on machines that
/// may be busy.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 5_000 } else { 500 });
/// Larger texts are not compared.
const MAX_COMPARED: usize = 4 * 1024 * 1024;

/// What was changed in a file, as a unified diff, bounded.
pub(crate) fn diff(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return format!("{name} stays as it was.");
    }
    if before.len().max(after.len()) > MAX_COMPARED {
        return format!(
            "{name}: {} bytes before, {} bytes now (too large for a diff)",
            before.len(),
            after.len()
        );
    }
    let diff = TextDiff::configure()
        .timeout(TIME)
        .diff_lines(before, after);
    let mut text = diff
        .unified_diff()
        .context_radius(3)
        .header(name, name)
        .to_string();
    let whole = text.chars().count();
    if whole > MAX_DIFF {
        let end = text
            .char_indices()
            .nth(MAX_DIFF)
            .map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text.push_str(&format!(
            "\n[cut: the first {MAX_DIFF} of {whole} characters of the diff are shown]"
        ));
    }
    text
}
