//! Marks of snapshots.
//!
//! Nobody can write on a snapshot there whose it is, so that is in its name: what this installation keeps begins with its mark
//! there, which nobody here sees. Only such are removed, and whoever may not choose starts from no others.

/// How snapshots begin that are only there for a copy to be made from them.
pub(super) const PASSING: &str = "sandyard-fork-";
/// How snapshots begin that an installation keeps.
const KEPT: &str = "sandyard-kept-";
/// Longest part of an installation's name in the name of a snapshot.
const MAX_INSTALLATION: usize = 48;

/// The name of an installation, as far as it can be part of a snapshot's: it has no dash, so that none is the beginning of another.
pub(super) fn plain_installation(installation: &str) -> String {
    let plain = installation.chars().filter(char::is_ascii_alphanumeric);
    let small = plain.map(|c| c.to_ascii_lowercase());
    small.take(MAX_INSTALLATION).collect()
}

/// What the names of snapshots begin with there that an installation keeps.
pub(super) fn mark(installation: &str) -> String {
    format!("{KEPT}{}-", plain_installation(installation))
}

/// Says whether a name is one that snapshots get from us, of whichever installation.
pub(super) fn is_marked(name: &str) -> bool {
    [PASSING, KEPT].iter().any(|mark| name.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_installations_apart() {
        assert_eq!(mark("Ours-1"), "sandyard-kept-ours1-");
        assert!(!mark("ours1").starts_with(&mark("ours")));
        assert!(is_marked(&format!("{}x", mark("theirs"))) && is_marked("sandyard-fork-x"));
        // An installation of that name would take what is kept for what passes.
        assert!(!mark("fork").starts_with(PASSING));
        assert!(!is_marked("sandyard") && !is_marked("kept"));
    }
}
