//! Running the probe as the program it is: alone in its process, as inside a sandbox.

use std::process::{Command, Stdio};

use sandyard_probe::Report;

/// The probe, ready to be given arguments.
pub(crate) fn probe() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sandyard-probe"))
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
pub(crate) fn told(report: &Report) -> String {
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
