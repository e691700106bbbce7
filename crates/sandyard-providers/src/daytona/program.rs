//! The agent's program, as Daytona's daemon runs it.

use std::collections::BTreeMap;

use reqwest::Body;
use sandyard_provider::Result;
use serde::Serialize;

use crate::cloud_tools::Program;

/// Port of the agent in a sandbox. Daytona's proxy accepts ports from 3000 to 9999; no known program uses this one.
pub(super) const AGENT_PORT: u16 = 9983;

/// Path of the program in a sandbox.
pub(super) fn path(program: &Program, folder: &str) -> String {
    format!("{folder}/{}", program.name())
}

/// The program's bytes and their number.
pub(super) fn body(program: &Program) -> Result<(Body, u64)> {
    Ok((Body::wrap_stream(program.pieces()?), program.size))
}

/// The shell line that runs it as the current user. The paths contain no character that is special to a shell.
pub(super) fn command_line(program: &Program, folder: &str) -> String {
    let (program_path, settings) = (path(program, folder), settings_path(folder));
    let role = match program.is_only_an_agent() {
        true => "",
        false => " agent",
    };
    format!(
        "{program_path}{role} --listen 0.0.0.0:{AGENT_PORT} --settings {settings} --user \"$(id -un)\""
    )
}

/// Folder of the program and its settings, in the user's home directory.
pub(super) fn folder(home: &str) -> String {
    format!("{home}/.sandyard")
}

/// Path of the agent's settings.
pub(super) fn settings_path(folder: &str) -> String {
    format!("{folder}/settings.json")
}

/// The agent's settings.
#[derive(Serialize)]
pub(super) struct Settings<'a> {
    pub(super) token: &'a str,
    pub(super) env: &'a BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn different_programs_have_different_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut lines = Vec::new();
        for (name, content) in [("sandyard", "1"), ("sandyard-agent", "2")] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("written");
            let program = Program::open(&path).await.expect("a program");
            assert_eq!(program.size, 1);
            lines.push(command_line(&program, "/home/me/.sandyard"));
        }
        let rest = " --listen 0.0.0.0:9983 --settings /home/me/.sandyard/settings.json --user \"$(id -un)\"";
        assert_eq!(
            lines[0],
            format!("/home/me/.sandyard/agent-6b86b273ff34fce1 agent{rest}")
        );
        assert_eq!(
            lines[1],
            format!("/home/me/.sandyard/agent-d4735e3a265e16ee{rest}")
        );
    }
}
