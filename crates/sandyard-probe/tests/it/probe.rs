//! Running the probe as the program it is: alone in its process, as inside a sandbox.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use sandyard_probe::Report;

/// The probe, ready to be given arguments.
pub(crate) fn probe() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sandyard-probe"))
}

/// Makes a command run as an ordinary user: as `uid` when we are root, else as we are.
pub(crate) fn ordinary(command: &mut Command, uid: u32) -> &mut Command {
    if rustix::process::geteuid().is_root() {
        command.uid(uid).gid(uid);
    }
    command.current_dir("/")
}

/// The program where any user can run it, and owned by us as an installed one would be.
pub(crate) fn installed() -> (tempfile::TempDir, PathBuf) {
    let mode = std::fs::Permissions::from_mode(0o755);
    let place = tempfile::Builder::new()
        .prefix("probe")
        .permissions(mode)
        .tempdir()
        .expect("a temporary directory");
    let program = place.path().join("sandyard-probe");
    // By a process of its own: whatever another test starts meanwhile would have a file that is open here for a moment, and what
    // somebody may still write to cannot be run.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_sandyard-probe"))
        .arg(&program)
        .status();
    assert!(copied.expect("cp runs").success(), "the program is copied");
    (place, program)
}

/// Runs a command and reads the JSON it prints.
pub(crate) fn answer<T: serde::de::DeserializeOwned>(command: &mut Command) -> T {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the probe starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {} {text} {errors}", output.status))
}

/// Every finding in one line each, for a failed assertion.
pub(crate) fn summary(report: &Report) -> String {
    let line = |finding: &sandyard_probe::Finding| {
        format!("{:?} {}: {}", finding.verdict, finding.id, finding.observed)
    };
    report
        .findings
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}
