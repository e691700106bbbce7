//! Our agent's program, as Daytona's daemon runs it.

use std::collections::BTreeMap;

use reqwest::Body;
use sandyard_provider::Result;
use serde::Serialize;

use crate::cloud_tools::Program;

/// Where our agent listens inside. Daytona's proxy has led to ports from 3000 to 9999 only, and this one is nobody's.
pub(super) const AGENT_PORT: u16 = 9983;

/// Where it is in a sandbox.
pub(super) fn place(program: &Program, folder: &str) -> String {
    format!("{folder}/{}", program.name())
}

/// Its bytes, and how many.
pub(super) fn body(program: &Program) -> Result<(Body, u64)> {
    Ok((Body::wrap_stream(program.pieces()?), program.size))
}

/// The shell line that runs it, as the user that runs the line. Paths are plain: nothing in them means anything to a shell.
pub(super) fn line(program: &Program, folder: &str) -> String {
    let (place, settings) = (place(program, folder), settings_place(folder));
    let role = match program.is_only_an_agent() {
        true => "",
        false => " agent",
    };
    format!(
        "{place}{role} --listen 0.0.0.0:{AGENT_PORT} --settings {settings} --user \"$(id -un)\""
    )
}

/// Where everything of ours is, in its user's home.
pub(super) fn folder(home: &str) -> String {
    format!("{home}/.sandyard")
}

/// Where an agent finds what it is told.
pub(super) fn settings_place(folder: &str) -> String {
    format!("{folder}/settings.json")
}

/// What an agent is told.
#[derive(Serialize)]
pub(super) struct Settings<'a> {
    pub(super) token: &'a str,
    pub(super) env: &'a BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_program_has_another_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut lines = Vec::new();
        for (name, content) in [("sandyard", "1"), ("sandyard-agent", "2")] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("written");
            let program = Program::open(&path).await.expect("a program");
            assert_eq!(program.size, 1);
            lines.push(line(&program, "/home/me/.sandyard"));
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
