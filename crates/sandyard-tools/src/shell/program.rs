//! Which shell to run, and how.

use std::path::{Path, PathBuf};

use super::command_input::Kind;

/// A shell to run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// Whether the shell reads the user's start-up files.
    pub(super) is_login: bool,
}

/// Variables that name pagers, which would wait for a key.
const PAGERS: [&str; 4] = ["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"];

impl Program {
    /// bash, or `/bin/sh` if there is no bash.
    pub(super) fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let default_folders = ["/bin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
        let bash = std::env::split_paths(&path)
            .chain(default_folders)
            .map(|folder| folder.join("bash"));
        match bash
            .filter(|bash| bash.is_absolute())
            .find(|bash| bash.is_file())
        {
            Some(path) => Self {
                path,
                kind: Kind::Bash,
                is_login: true,
            },
            None => Self {
                path: "/bin/sh".into(),
                kind: Kind::Sh,
                is_login: true,
            },
        }
    }

    /// The same shell without start-up files, for start-up files that do not end.
    pub(super) fn without_startup_files(self) -> Self {
        Self {
            is_login: false,
            ..self
        }
    }

    /// The command that starts the shell interactively. An interactive shell forwards SIGHUP to its jobs when its terminal closes.
    pub(super) fn command(&self, folder: &Path) -> pty_process::Command {
        let arguments: &[&str] = match (self.kind, self.is_login) {
            (Kind::Bash, true) => &["--noediting", "-l", "-i"],
            (Kind::Bash, false) => &["--noediting", "--noprofile", "--norc", "-i"],
            (Kind::Sh, true) => &["-l", "-i"],
            (Kind::Sh, false) => &["-i"],
        };
        let mut command = pty_process::Command::new(&self.path)
            .args(arguments)
            .current_dir(folder)
            .env("TERM", "xterm-256color");
        for pager in PAGERS {
            command = command.env(pager, "cat");
        }
        command
    }

    /// The first command of a session. It turns off the history, mail notices and the input timeout, and returns to the folder in case
    /// the start-up files have left it.
    pub(super) fn first_command(&self, folder: &Path) -> String {
        let folder = folder.to_string_lossy().replace('\'', "'\\''");
        let history = match self.kind {
            Kind::Bash => "history -c; set +o history +o histexpand; unset HISTFILE; ",
            Kind::Sh => "",
        };
        format!("{{ {history}unset MAILCHECK TMOUT; cd '{folder}'; }} 2>/dev/null; true")
    }
}
