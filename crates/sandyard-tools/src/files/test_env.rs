//! Tools with a temporary workspace, for tests.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::call::Call;
use crate::options::Options;
use crate::registry::Registry;
use crate::reply::{Answer, Problem, Reply};
use crate::tool_state::ToolState;

/// A temporary folder, and the tools that work in it.
pub(crate) struct TestEnv {
    pub(crate) folder: TempDir,
    pub(crate) tool_state: Arc<ToolState>,
    registry: Registry,
}

impl TestEnv {
    /// An empty environment. The workspace is the folder `work`; the tools cannot access what is next to it.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("work");
        std::fs::create_dir(&workspace).unwrap();
        let tool_state = Arc::new(ToolState::new(Options {
            home: workspace.clone(),
            workspace,
            more_roots: Vec::new(),
            token: None,
            port: 6060,
        }));
        let registry = Registry::new(tool_state.custom.clone());
        Self {
            folder,
            tool_state,
            registry,
        }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Creates a file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// The text of a file.
    pub(crate) fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.call_with(tool, arguments, Call::quiet()).await
    }

    /// Calls a tool with a given `Call`.
    pub(crate) async fn call_with(&self, tool: &str, arguments: Value, call: Call) -> Answer {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        let tool = self.registry.find(tool).unwrap();
        tool.call(self.tool_state.clone(), arguments, call).await
    }

    /// The text of a call that must succeed.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let reply: Reply = self.call(tool, arguments).await.unwrap();
        assert!(!reply.is_error());
        reply.all_text()
    }

    /// The problem of a call that must fail.
    pub(crate) async fn problem(&self, tool: &str, arguments: Value) -> String {
        let problem: Problem = self.call(tool, arguments).await.unwrap_err();
        problem.to_string()
    }

    /// The text of `Read`.
    pub(crate) async fn read(&self, path: &str) -> String {
        self.text("Read", json!({"file_path": path})).await
    }
}

/// Writes a program from another process. A process that another test starts meanwhile would inherit our open file, and a file that is
/// open for writing cannot be executed.
pub(crate) fn write_program(path: &std::path::Path, text: &str) {
    let line = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    let written = std::process::Command::new("sh")
        .args(["-c", line])
        .arg(path)
        .arg(text)
        .status();
    assert!(written.unwrap().success());
}
