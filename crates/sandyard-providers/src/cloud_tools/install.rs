//! Inspects a sandbox, sends the program and starts it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{Output, RunOptions};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::content::Content;
use super::inspection::{self, Inspection};
use super::program::Program;
use super::proof::{self, Answer};
use super::scripts;
use super::state::{MAX_STARTS, STARTS_WITHIN};
use super::{Problem, TOOL_SERVER_PORT, ToolServer, token};

/// Folder of projects, the same in every sandbox.
const WORKSPACE: &str = "/workspace";
/// Timeout of the inspection, of a start, and of sending the settings.
const RUN_TIMEOUT: Duration = Duration::from_secs(40);
/// Maximum size of a script's output.
const MAX_OUTPUT: usize = 16 << 10;
/// Timeout of sending the program.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of removing an incomplete upload.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the cloud's proxy may take to reach a new tool server, and the pauses between attempts.
const PROOF_TIMEOUT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl ToolServer {
    /// Makes sure that the tool server runs, unless another program uses its port; returns whether it is this installation's. The
    /// caller holds `starting`.
    pub(super) async fn install(&self, replaces_other: bool) -> Result<bool, Problem> {
        let program = self.installer.program().await;
        let program = program.map_err(|error| Problem::new(error.to_string()))?;
        let (name, port) = (program.name(), self.installer.port);
        let inspect = scripts::inspect(name, program.size, port, replaces_other, WORKSPACE);
        let output = self.run(inspect).await?;
        let inspection = Inspection::read(&String::from_utf8_lossy(&output.stdout));
        if inspection.is_port_in_use && !inspection.is_running {
            return Ok(false);
        }
        if !inspection.is_running {
            check(&inspection, program)?;
            if !self.state.allow_start() {
                return Err(self.state.problem().unwrap_or_else(|| {
                    let seconds = STARTS_WITHIN.as_secs();
                    Problem::new(format!(
                        "it exited {MAX_STARTS} times within {seconds} seconds, see {}/tools.log",
                        inspection.folder
                    ))
                }));
            }
            if let Err(problem) = self.start(&inspection, program).await {
                // Another server of the installation may have been faster, and then its tool server has the ports.
                return match proof::request_proof(&self.agent, &self.token).await {
                    Ok(Answer::Proof) => Ok(true),
                    _ => Err(problem),
                };
            }
        }
        self.wait_for_proof(&inspection.folder).await?;
        Ok(true)
    }

    async fn start(&self, inspection: &Inspection, program: &Program) -> Result<(), Problem> {
        let folder = &inspection.folder;
        // Other servers of the installation may do the same now, so names contain a random number.
        let attempt = proof::nonce()?;
        let mut part = None;
        if !inspection.has_program {
            let path = format!("{folder}/{}.part-{attempt}", program.name());
            part = Some(self.send_program(inspection, program, path).await?);
        }
        let settings = format!("{folder}/tools-{attempt}.json");
        self.send_settings(inspection, &settings).await?;
        let (name, size) = (program.name(), program.size);
        let start = scripts::start(folder, name, size, &settings, part.as_deref());
        let started = self.run(start).await?;
        if started.exit.exit_code == 0 {
            return Ok(());
        }
        let message = [started.stdout, started.stderr].concat();
        let message = inspection::plain(&String::from_utf8_lossy(&message));
        Err(Problem::new(match message.is_empty() {
            true => "it exited at once without a message".to_owned(),
            false => message,
        }))
    }

    pub(super) async fn send_settings(
        &self,
        inspection: &Inspection,
        path: &str,
    ) -> Result<(), Problem> {
        let settings = json!({
            "tokens": [self.token.hash(), token::hash(&self.access_token)],
            "workspace": inspection.workspace, "home": inspection.home, "door": TOOL_SERVER_PORT, "port": self.installer.port,
        });
        let result = self.agent.write_file(path, settings.to_string());
        // The client has no idle timeout, because sandboxes may be paused, so a bound is needed here.
        let result = tokio::time::timeout(RUN_TIMEOUT, result).await;
        result
            .map_err(|_| Problem::timed_out("be configured", RUN_TIMEOUT))?
            .map(drop)
            .map_err(Problem::from)
    }

    /// Sends the program, compressed if the sandbox can unpack it; returns its path.
    async fn send_program(
        &self,
        inspection: &Inspection,
        program: &Program,
        path: String,
    ) -> Result<String, Problem> {
        tracing::debug!(agent = ?self.agent, "Sending the tool server");
        let packed = match inspection.has_gzip {
            true => program.packed().await,
            false => None,
        };
        // The packed and the unpacked file exist at the same time for a moment.
        let fits = |packed: &&Arc<Content>| {
            missing_space(inspection, program.size + packed.size()).is_none()
        };
        match packed.filter(fits) {
            Some(packed) => {
                let path = format!("{path}.gz");
                self.send(packed.pieces(), &path).await.map(|()| path)
            }
            None => {
                let pieces = program.pieces();
                let pieces = pieces.map_err(|error| Problem::new(error.to_string()))?;
                self.send(pieces, &path).await.map(|()| path)
            }
        }
    }

    pub(super) async fn send(
        &self,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        path: &str,
    ) -> Result<(), Problem> {
        let result = self.agent.write_file_from(path, StreamReader::new(pieces));
        let result = tokio::time::timeout(UPLOAD_TIMEOUT, result).await;
        let result = result.map_err(|_| Problem::timed_out("be sent", UPLOAD_TIMEOUT));
        let problem = match result.and_then(|result| result.map_err(Problem::from)) {
            Ok(_) => return Ok(()),
            Err(problem) => problem,
        };
        // If the file cannot be removed now, a later inspection removes it.
        let _ = tokio::time::timeout(REMOVE_TIMEOUT, self.agent.remove(path)).await;
        Err(problem)
    }

    /// Waits until the tool server proves itself through the cloud's proxy.
    async fn wait_for_proof(&self, folder: &str) -> Result<(), Problem> {
        let until = Instant::now() + PROOF_TIMEOUT;
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = proof::request_proof(&self.agent, &self.token).await;
            if let Ok(Answer::Proof) = answer {
                return Ok(());
            }
            if Instant::now() + pause > until {
                answer?;
                return Err(Problem::new(format!(
                    "it runs but does not answer on port {TOOL_SERVER_PORT}: see {folder}/tools.log, or kill process $(cat {folder}/tools.pid)"
                )));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn run(&self, command: ProcessConfig) -> Result<Output, Problem> {
        let options = RunOptions {
            timeout: RUN_TIMEOUT,
            max_output: MAX_OUTPUT,
            user: None,
        };
        Ok(self.agent.run(command, &options).await?)
    }
}

/// Reports what prevents the installation before anything is sent.
fn check(inspection: &Inspection, program: &Program) -> Result<(), Problem> {
    let expected = std::env::consts::ARCH;
    if inspection.machine != expected {
        let machine = &inspection.machine;
        return Err(Problem::new(format!(
            "the sandbox has the architecture `{machine}`, but this server's program is for `{expected}`: use a template of that architecture"
        )));
    }
    if inspection.folder.is_empty() || inspection.home.is_empty() || inspection.workspace.is_empty()
    {
        return Err(Problem::new(
            "the sandbox's user has no writable home directory: create one in the template",
        ));
    }
    match missing_space(inspection, program.size) {
        Some((free, required)) if !inspection.has_program => Err(Problem::disk_full(format!(
            "the sandbox's disk has {free} KiB free, but the program needs {required} KiB: free some space or use a larger template"
        ))),
        _ => Ok(()),
    }
}

/// Space that must remain free.
const SPARE_KIB: u64 = 1024;

/// Free and required KiB when that many bytes do not fit.
fn missing_space(inspection: &Inspection, size: u64) -> Option<(u64, u64)> {
    let required = size / 1024 + SPARE_KIB;
    let free = inspection.free_kib?;
    (free < required).then_some((free, required))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn obstacles_are_reported_before_anything_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sandyard");
        std::fs::write(&path, "program").expect("written");
        let program = Program::open(&path).await.expect("a program");
        let valid = || Inspection {
            home: "/home/user".to_owned(),
            folder: "/home/user/.sandyard".to_owned(),
            machine: std::env::consts::ARCH.to_owned(),
            workspace: "/workspace".to_owned(),
            ..Inspection::default()
        };
        let check_result = |inspection: Inspection| {
            check(&inspection, &program).map_err(|problem| problem.message)
        };
        assert_eq!(check_result(valid()), Ok(()));
        let machine = "riscv64".to_owned();
        let other =
            check_result(Inspection { machine, ..valid() }).expect_err("another architecture");
        assert!(other.contains("riscv64"), "{other}");
        let homeless = Inspection {
            folder: String::new(),
            ..valid()
        };
        assert!(check_result(homeless).is_err());
        let with_little_space = |has_program| Inspection {
            free_kib: Some(10),
            has_program,
            ..valid()
        };
        // An archive and its content need space at the same time.
        let with_space = Inspection {
            free_kib: Some(SPARE_KIB + 10),
            ..valid()
        };
        assert_eq!(missing_space(&with_space, 10 << 10), None);
        assert_eq!(
            missing_space(&with_space, 11 << 10),
            Some((SPARE_KIB + 10, SPARE_KIB + 11))
        );
        let message = check_result(with_little_space(false)).expect_err("no space");
        assert!(message.contains("free some space"), "{message}");
        assert_eq!(check_result(with_little_space(true)), Ok(()));
    }
}
