//! Which shell is run, and how.

use std::path::{Path, PathBuf};

use super::typed::Kind;

/// A shell to run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// Whether it reads the user's start-up files.
    pub(super) is_login: bool,
}

/// Programs that would wait for a person to turn pages.
const PAGERS: [&str; 4] = ["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"];

impl Program {
    /// bash, or what there is instead.
    pub(super) fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let usual = ["/bin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
        let bash = std::env::split_paths(&path)
            .chain(usual)
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

    /// The same without start-up files, for when those do not come to an end.
    pub(super) fn plain(self) -> Self {
        Self {
            is_login: false,
            ..self
        }
    }

    /// What starts it as a person's shell. When its terminal is closed it is told so, and tells its jobs: it must
    /// live for that.
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

    /// Its first command: no history of what is typed, no letters about mail, no end for lack of input, and the folder, should
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
