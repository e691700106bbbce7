//! Real shells, run the way callers run them.

mod callers;
mod output;
mod posix_shell;
mod run;
mod run_command;
mod sessions;
mod stopping;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::Call;
use crate::options::Options;
use crate::reply::{Answer, Reply};
use crate::tool_state::ToolState;

/// Longest wait for something that must happen.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// A tool_state in a folder of its own.
struct TestEnv {
    tool_state: Arc<ToolState>,
    folder: tempfile::TempDir,
}

impl TestEnv {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ToolState)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut tool_state = ToolState::new(Options {
            workspace: folder.path().to_owned(),
            more_roots: Vec::new(),
            home: folder.path().to_owned(),
            token: None,
            port: 6060,
        });
        tool_state.sessions.max_start = Some(MAX_WAIT);
        change(&mut tool_state);
        Self {
            tool_state: Arc::new(tool_state),
            folder,
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_as(name, arguments, Call::quiet()).await
    }

    async fn call_as(&self, name: &str, arguments: Value, call: Call) -> Answer {
        let tool = super::tools()
            .into_iter()
            .find(|tool| tool.name() == name)
            .unwrap();
        let Value::Object(arguments) = arguments else {
            panic!("not an object")
        };
        tool.call(self.tool_state.clone(), arguments, call).await
    }

    /// Runs a command in session `s`.
    async fn bash(&self, command: &str) -> Reply {
        self.call("Bash", json!({"session_name": "s", "command": command}))
            .await
            .unwrap()
    }

    /// Runs a command in session `s`; its output and exit code.
    async fn run(&self, command: &str) -> (String, i32) {
        let reply = self.bash(command).await;
        let ran = reply.structured().unwrap();
        assert_eq!(ran["is_running"], false, "{command}: {ran}");
        (
            ran["output"].as_str().unwrap().to_owned(),
            i32::try_from(ran["exit_code"].as_i64().unwrap()).unwrap(),
        )
    }

    /// Starts a command in session `s` that goes on.
    async fn start(&self, command: &str) {
        let arguments = json!({"session_name": "s", "command": command, "wait_for_output": false});
        let reply = self.call("Bash", arguments).await.unwrap();
        assert_eq!(reply.structured().unwrap()["is_running"], true);
    }

    /// Stops what runs in session `s`.
    async fn stop(&self) -> Answer {
        self.call("BashStop", json!({"session_name": "s"})).await
    }

    /// Waits until the command of session `s` has ended with this code, if an answer does not say so already: it was given
    /// when nothing came for a moment, and on a busy machine the end comes later.
    async fn ends(&self, answer: &Reply, code: i32) {
        if answer.structured().unwrap()["exit_code"] != code {
            self.see_state(&format!("last exit code {code}")).await;
        }
    }

    /// Waits until all that the command of session `s` has said is this, if an answer does not have it already, for the same
    /// reason.
    async fn expect_output(&self, answer: &Reply, output: &str) {
        if answer.structured().unwrap()["output"] != output {
            self.look_for(|_, seen| seen == output).await;
        }
    }

    /// Waits until the output of session `s` has a text in it.
    async fn see(&self, text: &str) -> Reply {
        self.look_for(|_, output| output.contains(text)).await
    }

    /// Waits until what is said about session `s` has a text in it.
    async fn see_state(&self, text: &str) -> Reply {
        self.look_for(|line, _| line.contains(text)).await
    }

    async fn look_for(&self, is_there: impl Fn(&str, &str) -> bool) -> Reply {
        let begin = std::time::Instant::now();
        loop {
            let seen = self
                .call("BashView", json!({"session_names": ["s"]}))
                .await
                .unwrap();
            let text = seen.all_text();
            let (line, output) = text.split_once('\n').unwrap();
            if is_there(line, output) {
                return seen;
            }
            assert!(begin.elapsed() < MAX_WAIT, "not seen in {text:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until a process is gone.
async fn is_gone(pid: &str) -> bool {
    let begin = std::time::Instant::now();
    while begin.elapsed() < MAX_WAIT {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Err(_) => return true,
            Ok(stat)
                if stat
                    .rsplit_once(')')
                    .is_some_and(|(_, rest)| rest.starts_with(" Z")) =>
            {
                return true;
            }
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    false
}
