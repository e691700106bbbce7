//! The result of inspecting a sandbox. It is untrusted text.

/// What the inspection script reports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inspection {
    pub(super) home: String,
    /// Folder of the tool server's files; empty when there is none.
    pub(super) folder: String,
    /// Processor architecture.
    pub(super) machine: String,
    /// Folder of projects.
    pub(super) workspace: String,
    /// Whether the folder contains the program.
    pub(super) has_program: bool,
    /// Whether this installation's tool server runs.
    pub(super) is_running: bool,
    /// Whether a program listens on the port.
    pub(super) is_port_in_use: bool,
    /// Whether `gzip` is available to unpack the program.
    pub(super) has_gzip: bool,
    /// Free space on the disk.
    pub(super) free_kib: Option<u64>,
}

impl Inspection {
    /// Parses the report. Invalid paths become empty.
    pub(super) fn read(text: &str) -> Self {
        let mut inspection = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match name {
                "home" => inspection.home = path(value),
                "folder" => inspection.folder = path(value),
                "workspace" => inspection.workspace = path(value),
                "machine" => inspection.machine = plain(value),
                "has_program" => inspection.has_program = true,
                "has_gzip" => inspection.has_gzip = true,
                "running" => inspection.is_running = true,
                "taken" => inspection.is_port_in_use = true,
                "free_kib" => inspection.free_kib = value.parse().ok(),
                _ => {}
            }
        }
        inspection
    }
}

/// Maximum length of a path.
const MAX_PATH: usize = 1024;
/// Maximum length of a message that is shown to users.
const MAX_MESSAGE: usize = 600;

fn path(text: &str) -> String {
    let is_path = text.starts_with('/') && text.len() <= MAX_PATH;
    match is_path && !text.chars().any(char::is_control) {
        true => text.to_owned(),
        false => String::new(),
    }
}

/// Text of the sandbox without control characters, shortened.
pub(super) fn plain(text: &str) -> String {
    let text_chars = text.trim().chars().take(MAX_MESSAGE);
    text_chars
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_lines_are_ignored() {
        let inspection = Inspection::read(
            "home=relative\nfolder=/a\u{7}b\nfree_kib=-1\ngarbage\nmachine=x\u{1b}y\n",
        );
        let expected = Inspection {
            machine: "x y".to_owned(),
            ..Inspection::default()
        };
        assert_eq!(inspection, expected);
    }
}
