//! Looking, bringing the program in, and starting it.

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
use super::{DOOR, Problem, ToolServer, token};

/// Where projects are, as in every sandbox.
const WORKSPACE: &str = "/workspace";
/// How long a look may take, a start, and what it is told to get there.
const RUN_TIME: Duration = Duration::from_secs(40);
/// Most that is kept of what they say.
const MAX_OUTPUT: usize = 16 << 10;
/// How long the program may take to get there.
const UPLOAD_TIME: Duration = Duration::from_secs(300);
/// How long what did not get there whole may take to be removed.
const REMOVE_TIME: Duration = Duration::from_secs(5);
/// How long the cloud's proxy may take to find what was started, and the pauses between looks.
const PROOF_TIME: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl ToolServer {
    /// Sees to it that ours runs, unless somebody else has its place; says whether it is ours. Whoever calls holds `starting`.
    pub(super) async fn install(&self, is_another: bool) -> Result<bool, Problem> {
        let program = self.kit.program().await;
        let program = program.map_err(|error| Problem::new(error.to_string()))?;
        let (name, port) = (program.name(), self.kit.port);
        let look = scripts::look(name, program.size, port, is_another, WORKSPACE);
        let looked = self.run(look).await?;
        let seen = Inspection::read(&String::from_utf8_lossy(&looked.stdout));
        if seen.is_taken && !seen.is_running {
            return Ok(false);
        }
        if !seen.is_running {
            check(&seen, program)?;
            if !self.memory.may_start() {
                return Err(self.memory.problem().unwrap_or_else(|| {
                    let seconds = STARTS_WITHIN.as_secs();
                    Problem::new(format!(
                        "it ended {MAX_STARTS} times within {seconds} seconds, see {}/tools.log",
                        seen.folder
                    ))
                }));
            }
            if let Err(problem) = self.start(&seen, program).await {
                // Another server of the installation may have been faster: then its has the ports.
                return match proof::ask(&self.agent, &self.token).await {
                    Ok(Answer::Proof) => Ok(true),
                    _ => Err(problem),
                };
            }
        }
        self.until_it_answers(&seen.folder).await?;
        Ok(true)
    }

    async fn start(&self, seen: &Inspection, program: &Program) -> Result<(), Problem> {
        let folder = &seen.folder;
        // Other servers of the installation may be at it too.
        let attempt = proof::number()?;
        let mut part = None;
        if !seen.has_program {
            let place = format!("{folder}/{}.part-{attempt}", program.name());
            part = Some(self.send_program(seen, program, place).await?);
        }
        let settings = format!("{folder}/tools-{attempt}.json");
        self.send_settings(seen, &settings).await?;
        let (name, size) = (program.name(), program.size);
        let start = scripts::start(folder, name, size, &settings, part.as_deref());
        let started = self.run(start).await?;
        if started.exit.exit_code == 0 {
            return Ok(());
        }
        let said = [started.stdout, started.stderr].concat();
        let said = inspection::plain(&String::from_utf8_lossy(&said));
        Err(Problem::new(match said.is_empty() {
            true => "it ended at once and said nothing".to_owned(),
            false => said,
        }))
    }

    pub(super) async fn send_settings(
        &self,
        seen: &Inspection,
        place: &str,
    ) -> Result<(), Problem> {
        let told = json!({
            "tokens": [self.token.hash(), token::hash(&self.access_token)],
            "workspace": seen.workspace, "home": seen.home, "door": DOOR, "port": self.kit.port,
        });
        let sent = self.agent.write_file(place, told.to_string());
        // The client bears any silence, as sandboxes may be paused: so it is not for it to end this.
        let sent = tokio::time::timeout(RUN_TIME, sent).await;
        sent.map_err(|_| Problem::late("be told what to do", RUN_TIME))?
            .map(drop)
            .map_err(Problem::from)
    }

    /// Sends it, compressed where that can be unpacked; returns where it is.
    async fn send_program(
        &self,
        seen: &Inspection,
        program: &Program,
        place: String,
    ) -> Result<String, Problem> {
        tracing::debug!(agent = ?self.agent, "Bringing the tool server in");
        let packed = match seen.has_gzip {
            true => program.packed().await,
            false => None,
        };
        // Both are there for a moment.
        let has_room =
            |packed: &&Arc<Content>| missing_space(seen, program.size + packed.size()).is_none();
        match packed.filter(has_room) {
            Some(packed) => {
                let place = format!("{place}.gz");
                self.send(packed.pieces(), &place).await.map(|()| place)
            }
            None => {
                let pieces = program.pieces();
                let pieces = pieces.map_err(|error| Problem::new(error.to_string()))?;
                self.send(pieces, &place).await.map(|()| place)
            }
        }
    }

    pub(super) async fn send(
        &self,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        place: &str,
    ) -> Result<(), Problem> {
        let sent = self.agent.write_file_from(place, StreamReader::new(pieces));
        let sent = tokio::time::timeout(UPLOAD_TIME, sent).await;
        let sent = sent.map_err(|_| Problem::late("be sent", UPLOAD_TIME));
        let problem = match sent.and_then(|sent| sent.map_err(Problem::from)) {
            Ok(_) => return Ok(()),
            Err(problem) => problem,
        };
        // If it cannot be reached now, a later look removes it.
        let _ = tokio::time::timeout(REMOVE_TIME, self.agent.remove(place)).await;
        Err(problem)
    }

    /// Waits until it proves itself through the cloud's proxy.
    async fn until_it_answers(&self, folder: &str) -> Result<(), Problem> {
        let until = Instant::now() + PROOF_TIME;
        let mut pause = FIRST_PAUSE;
        loop {
            let asked = proof::ask(&self.agent, &self.token).await;
            if let Ok(Answer::Proof) = asked {
                return Ok(());
            }
            if Instant::now() + pause > until {
                asked?;
                return Err(Problem::new(format!(
                    "it runs and is not found at port {DOOR}: see {folder}/tools.log, or end process $(cat {folder}/tools.pid)"
                )));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn run(&self, command: ProcessConfig) -> Result<Output, Problem> {
        let options = RunOptions {
            timeout: RUN_TIME,
            max_output: MAX_OUTPUT,
            user: None,
        };
        Ok(self.agent.run(command, &options).await?)
    }
}

/// Says what stands in its way, before anything is sent.
fn check(seen: &Inspection, program: &Program) -> Result<(), Problem> {
    let own = std::env::consts::ARCH;
    if seen.machine != own {
        let machine = &seen.machine;
        return Err(Problem::new(format!(
            "the sandbox is of the kind `{machine}`, and the program of this server of `{own}`: use a template of that kind"
        )));
    }
    if seen.folder.is_empty() || seen.home.is_empty() || seen.workspace.is_empty() {
        return Err(Problem::new(
            "the sandbox's user has no home that can be written to: give it one in the template",
        ));
    }
    match missing_space(seen, program.size) {
        Some((free, wanted)) if !seen.has_program => Err(Problem::full(format!(
            "the sandbox's disk has {free} KiB left, and the program takes {wanted}: make room, or use a larger template"
        ))),
        _ => Ok(()),
    }
}

/// What is left free.
const SPARE_KIB: u64 = 1024;

/// How many KiB are free and how many are wanted, where that many bytes do not fit.
fn missing_space(seen: &Inspection, size: u64) -> Option<(u64, u64)> {
    let wanted = size / 1024 + SPARE_KIB;
    let free = seen.free_kib?;
    (free < wanted).then_some((free, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_stands_in_the_way_is_said_before_anything_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sandyard");
        std::fs::write(&path, "program").expect("written");
        let program = Program::open(&path).await.expect("a program");
        let fine = || Inspection {
            home: "/home/user".to_owned(),
            folder: "/home/user/.sandyard".to_owned(),
            machine: std::env::consts::ARCH.to_owned(),
            workspace: "/workspace".to_owned(),
            ..Inspection::default()
        };
        let told = |seen: Inspection| check(&seen, &program).map_err(|problem| problem.message);
        assert_eq!(told(fine()), Ok(()));
        let machine = "riscv64".to_owned();
        let other = told(Inspection { machine, ..fine() }).expect_err("another kind");
        assert!(other.contains("riscv64"), "{other}");
        let homeless = Inspection {
            folder: String::new(),
            ..fine()
        };
        assert!(told(homeless).is_err());
        let full = |has_program| Inspection {
            free_kib: Some(10),
            has_program,
            ..fine()
        };
        // What is to be unpacked needs room twice.
        let roomy = Inspection {
            free_kib: Some(SPARE_KIB + 10),
            ..fine()
        };
        assert_eq!(missing_space(&roomy, 10 << 10), None);
        assert_eq!(
            missing_space(&roomy, 11 << 10),
            Some((SPARE_KIB + 10, SPARE_KIB + 11))
        );
        let words = told(full(false)).expect_err("no room");
        assert!(words.contains("make room"), "{words}");
        assert_eq!(told(full(true)), Ok(()));
    }
}
