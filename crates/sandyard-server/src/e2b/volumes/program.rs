//! Programs that the volume helper runs, without a shell.

use std::time::Duration;

use sandyard_agent_client::RunOptions;
use sandyard_agent_client::wire::process::ProcessConfig;

/// Time limit of a program: removing a large folder takes a while.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Most bytes that are read of a program's output about one path.
const MAX_OUTPUT: usize = 64 << 10;

/// A program with its arguments.
pub(super) fn process(program: &str, arguments: &[&str]) -> ProcessConfig {
    ProcessConfig {
        cmd: program.to_owned(),
        args: arguments.iter().map(|&text| text.to_owned()).collect(),
        // The texts of programs are parsed, so they must not be translated.
        envs: [("LC_ALL".to_owned(), "C".to_owned())].into(),
        cwd: Some("/".to_owned()),
    }
}

/// Limits of a program's run.
pub(super) fn run_options() -> RunOptions {
    RunOptions {
        timeout: TIMEOUT,
        max_output: MAX_OUTPUT,
        user: None,
    }
}
