//! A data directory for one test, and the program that uses it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A temporary data directory. Dropping it ends its launcher.
pub(crate) struct TestEnv {
    folder: tempfile::TempDir,
}

impl TestEnv {
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

    /// The program with arguments, not started yet.
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

    /// Waits until all sandboxes are deleted.
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

impl Drop for TestEnv {
    /// Deletes everything. A test whose sandboxes cannot be deleted fails.
    fn drop(&mut self) {
        let give_up = Instant::now() + Duration::from_secs(120);
        let sandboxes = || std::fs::read_dir(self.data().join("sandboxes"));
        let has_any = || sandboxes().is_ok_and(|mut all| all.next().is_some());
        loop {
            let _ = self.sandyard(&["rm", "--local", "--all"]);
            if !has_any() || Instant::now() > give_up {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let is_left = has_any();
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
                let is_alive = || {
                    // It is not our child, so it may stay a zombie.
                    let stat = std::fs::read_to_string(entry.path().join("stat"));
                    stat.is_ok_and(|stat| !stat.contains(") Z "))
                };
                while is_alive() && Instant::now() < give_up {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        if let Ok(run) = std::fs::read_link(self.data().join("run")) {
            let _ = std::fs::remove_dir_all(run);
        }
        assert!(!is_left || std::thread::panicking(), "sandboxes are left");
    }
}
