//! Diffs of changed files.

use std::time::Duration;

use similar::TextDiff;

/// Maximum length of a diff, in characters.
const MAX_DIFF: usize = 8_000;
/// Time limit, after which a diff is correct but not the shortest. Longer in tests, which expect the shortest.
const TIME_LIMIT: Duration = Duration::from_millis(if cfg!(test) { 5_000 } else { 500 });
/// Maximum size of a text to compare, in bytes.
const MAX_COMPARED: usize = 4 * 1024 * 1024;

/// A unified diff of a file, within the limit.
pub(crate) fn diff(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return format!("{name} is unchanged.");
    }
    if before.len().max(after.len()) > MAX_COMPARED {
        return format!(
            "{name}: {} bytes before, {} bytes now (too large for a diff)",
            before.len(),
            after.len()
        );
    }
    let diff = TextDiff::configure()
        .timeout(TIME_LIMIT)
        .diff_lines(before, after);
    let mut text = diff
        .unified_diff()
        .context_radius(3)
        .header(name, name)
        .to_string();
    let total = text.chars().count();
    if total > MAX_DIFF {
        let end = text
            .char_indices()
            .nth(MAX_DIFF)
            .map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text.push_str(&format!(
            "\n[truncated: the first {MAX_DIFF} of {total} characters of the diff are shown]"
        ));
    }
    text
}
