//! A workshop over a folder of its own, for tests.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::call::Call;
use crate::options::Options;
use crate::registry::Registry;
use crate::reply::{Answer, Problem, Reply};
use crate::workshop::Workshop;

/// A folder, and the tools that work in it.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) workshop: Arc<Workshop>,
    registry: Registry,
}

impl Bench {
    /// An empty one: `work` is the workspace, beside it is what is out of reach.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("work");
        std::fs::create_dir(&workspace).unwrap();
        let workshop = Arc::new(Workshop::new(Options {
            home: workspace.clone(),
            workspace,
            more_roots: Vec::new(),
            token: None,
            port: 6060,
        }));
        let registry = Registry::new(workshop.custom.clone());
        Self {
            folder,
            workshop,
            registry,
        }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Makes a file.
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

    /// The same with a call of one's own.
    pub(crate) async fn call_with(&self, tool: &str, arguments: Value, call: Call) -> Answer {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        let tool = self.registry.find(tool).unwrap();
        tool.call(self.workshop.clone(), arguments, call).await
    }

    /// The text a call that succeeds answers.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let reply: Reply = self.call(tool, arguments).await.unwrap();
        assert!(!reply.is_error());
        reply.all_text()
    }

    /// What a call that fails says.
    pub(crate) async fn problem(&self, tool: &str, arguments: Value) -> String {
        let problem: Problem = self.call(tool, arguments).await.unwrap_err();
        problem.to_string()
    }

    /// The text of `Read`.
    pub(crate) async fn read(&self, path: &str) -> String {
        self.text("Read", json!({"file_path": path})).await
    }
}

/// Writes a program, by a process of its own: whatever another test starts meanwhile would have a file that is open here for a
/// moment, and what somebody may still write to cannot be run.
pub(crate) fn write_program(path: &std::path::Path, text: &str) {
    let line = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    let written = std::process::Command::new("sh")
        .args(["-c", line])
        .arg(path)
        .arg(text)
        .status();
    assert!(written.unwrap().success());
}
