//! Names of snapshots.
//!
//! Snapshots have no metadata, so the owner is in the name: snapshots of this installation have a prefix, which users of this
//! server do not see. Only such snapshots are removed, and restricted users start from no others.

/// Prefix of snapshots that exist for a copy only.
pub(super) const TEMPORARY: &str = "sandyard-fork-";
/// Prefix of snapshots that an installation saved.
const SAVED: &str = "sandyard-kept-";
/// Maximum length of an installation's part of a snapshot's name.
const MAX_INSTALLATION: usize = 48;

/// An installation's part of a snapshot's name. It contains no dash, so that none is the prefix of another.
pub(super) fn plain_installation(installation: &str) -> String {
    let plain = installation.chars().filter(char::is_ascii_alphanumeric);
    let small = plain.map(|c| c.to_ascii_lowercase());
    small.take(MAX_INSTALLATION).collect()
}

/// Prefix of the snapshots of an installation.
pub(super) fn prefix(installation: &str) -> String {
    format!("{SAVED}{}-", plain_installation(installation))
}

/// Whether a name has the prefix of any installation.
pub(super) fn has_prefix(name: &str) -> bool {
    [TEMPORARY, SAVED]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_installations_differ() {
        assert_eq!(prefix("Ours-1"), "sandyard-kept-ours1-");
        assert!(!prefix("ours1").starts_with(&prefix("ours")));
        assert!(has_prefix(&format!("{}x", prefix("other"))) && has_prefix("sandyard-fork-x"));
        // The prefix of an installation with this name must not look like that of temporary snapshots.
        assert!(!prefix("fork").starts_with(TEMPORARY));
        assert!(!has_prefix("sandyard") && !has_prefix("kept"));
    }
}
