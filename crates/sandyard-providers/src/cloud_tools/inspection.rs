//! What a look inside tells: words, and nothing that is believed to be more.

/// What a look tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inspection {
    pub(super) home: String,
    /// Where our files are; empty: nowhere.
    pub(super) folder: String,
    /// The processor's kind.
    pub(super) machine: String,
    /// Where projects are.
    pub(super) workspace: String,
    /// Whether the program is there.
    pub(super) has_program: bool,
    /// Whether a tool server of ours runs.
    pub(super) is_running: bool,
    /// Whether somebody listens on the port.
    pub(super) is_taken: bool,
    /// Whether what is brought in can be unpacked there.
    pub(super) has_gzip: bool,
    /// How much more can be written.
    pub(super) free_kib: Option<u64>,
}

impl Inspection {
    /// Reads it. Paths that are none become empty.
    pub(super) fn read(text: &str) -> Self {
        let mut seen = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match name {
                "home" => seen.home = path(value),
                "folder" => seen.folder = path(value),
                "workspace" => seen.workspace = path(value),
                "machine" => seen.machine = plain(value),
                "has_program" => seen.has_program = true,
                "has_gzip" => seen.has_gzip = true,
                "running" => seen.is_running = true,
                "taken" => seen.is_taken = true,
                "free_kib" => seen.free_kib = value.parse().ok(),
                _ => {}
            }
        }
        seen
    }
}

/// Longest path that is believed.
const MAX_PATH: usize = 1024;
/// Longest words that are repeated.
const MAX_WORDS: usize = 600;

fn path(text: &str) -> String {
    let is_path = text.starts_with('/') && text.len() <= MAX_PATH;
    match is_path && !text.chars().any(char::is_control) {
        true => text.to_owned(),
        false => String::new(),
    }
}

/// Words of the sandbox's, fit to be repeated.
pub(super) fn plain(text: &str) -> String {
    let words = text.trim().chars().take(MAX_WORDS);
    words
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_words_are_no_facts() {
        let seen = Inspection::read(
            "home=relative\nfolder=/a\u{7}b\nfree_kib=-1\nnonsense\nmachine=x\u{1b}y\n",
        );
        let expected = Inspection {
            machine: "x y".to_owned(),
            ..Inspection::default()
        };
        assert_eq!(seen, expected);
    }
}
