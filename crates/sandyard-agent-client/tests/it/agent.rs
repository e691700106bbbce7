//! The real agent as a process of its own, on a socket of its own.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::Duration;

use sandyard_agent_client::{AgentClient, Endpoint};
use tempfile::TempDir;

/// A running agent that serves as the user who runs the tests; ended when dropped.
pub(crate) struct Agent {
    child: Child,
    pub(crate) directory: TempDir,
    pub(crate) client: AgentClient,
}

impl Agent {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("agent.sock");
        let child = Command::new(program())
            .args(["--user", &user_name(), "--unix"])
            .arg(&socket)
            .spawn()
            .expect("the agent starts");
        let client = AgentClient::new(Endpoint::Unix(socket));
        let agent = Self {
            child,
            directory,
            client,
        };
        tokio::time::timeout(Duration::from_secs(120), async {
            while agent.client.health().await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("the agent serves");
        agent
    }

    /// Waits until no command remains: the end of a command may be reported before the agent removes it from its list.
    pub(crate) async fn until_idle(&self) {
        tokio::time::timeout(Duration::from_secs(120), async {
            while !self.client.list().await.expect("a list").is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("no command is left");
    }

    /// Returns a path in the test's own directory.
    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the agent once, unless its path is given. It is not a dependency of this crate, so Cargo does not build it.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os("SANDYARD_TEST_AGENT") {
            return given.into();
        }
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "sandyard-agent"])
            .args(["--bin", "sandyard-agent"])
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the agent builds");
        // The tests are in `<target>/<triple>/<profile>/deps`, and the agent is always built in the profile `dev`.
        let tests = std::env::current_exe().expect("a path");
        let root = tests.ancestors().nth(3).expect("three directories up");
        root.join("debug/sandyard-agent")
    })
}

fn user_name() -> String {
    let output = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8(output.stdout)
        .expect("a name")
        .trim()
        .to_owned()
}
