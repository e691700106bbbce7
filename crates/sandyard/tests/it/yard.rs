//! A data directory for one test, and the program pointed at it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A data directory of its own; its launcher is ended with it.
pub(crate) struct Yard {
    folder: tempfile::TempDir,
}

impl Yard {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The program with some arguments, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandyard"));
        command
            .arg("--data-dir")
            .arg(self.data())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn sandyard(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("run the program")
    }

    /// Runs the program, which must succeed; returns what it prints, without the newline at the end.
    pub(crate) fn out(&self, arguments: &[&str]) -> String {
        let output = self.sandyard(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Waits until no sandbox is left.
    pub(crate) fn wait_until_empty(&self) {
        let give_up = Instant::now() + Duration::from_secs(120);
        while self.out(&["ls", "--local", "--json"]) != "[]" {
            assert!(
                Instant::now() < give_up,
                "sandboxes are left: {}",
                self.out(&["ls", "--local"])
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = self.sandyard(&["rm", "--local", "--all"]);
        let data = self.data().display().to_string();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok())
            else {
                continue;
            };
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
            if words.get(1) == Some(&b"launcher".as_slice()) && words.contains(&data.as_bytes()) {
                let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                let give_up = Instant::now() + Duration::from_secs(60);
                while entry.path().exists() && Instant::now() < give_up {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        if let Ok(run) = std::fs::read_link(self.data().join("run")) {
            let _ = std::fs::remove_dir_all(run);
        }
    }
}
