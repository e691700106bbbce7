//! Runs commands in a sandbox.

use std::time::{Duration, Instant};

use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{
    ProcessConfig, ProcessSelector, Pty, PtySize, Signal, StartRequest,
};
use sandyard_agent_client::{AgentClient, ProcessStream, StartOptions};
use sandyard_core::time_span::readable;
use sandyard_core::{Caller, ErrorKind, SandboxId};
use sandyard_store::model::Sandbox;
use serde_json::json;

use super::create::check_map;
use super::live::Live;
use super::output_buffer::OutputBuffer;
use crate::command_log::WhenFull;
use crate::error::{Result, ServiceError};
use crate::memory::MEMORY_WAIT;
use crate::request::{Command, CommandOutput, RunRequest};
use crate::service::Service;
use sandyard_core::clock::millis;

/// How much longer than its command an agent may take, to kill it and to report that.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes of the buffers between an answer and its client, besides the output itself.
const ANSWER_BUFFERS: usize = 64 << 10;
/// Most characters of a command in the history.
const MAX_SHOWN: usize = 500;

impl Service {
    /// How long a command in the foreground may run.
    ///
    /// # Errors
    ///
    /// If `requested` is more than this server allows.
    pub fn foreground_timeout(&self, requested: Option<Duration>) -> Result<Duration> {
        let max = self.settings().max_command_timeout;
        let timeout = requested.unwrap_or(self.settings().command_timeout);
        if timeout <= max {
            return Ok(timeout);
        }
        let problem = format!(
            "`timeout` of a command in the foreground must be at most {} (got {})",
            readable(max.as_secs()),
            readable(timeout.as_secs())
        );
        Err(ServiceError::invalid("timeout", problem).hint("run it in the background"))
    }

    /// Runs a command to its end. A time-out, or a client that disconnects, kills it and all its children.
    pub async fn run_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> Result<CommandOutput> {
        let timeout = self.foreground_timeout(request.timeout)?;
        let request = RunRequest {
            timeout: Some(timeout),
            ..request
        };
        let memory = self.memory().hold(&caller.name);
        // Before the command runs, so that no command runs whose output cannot be returned.
        memory.grow(ANSWER_BUFFERS, MEMORY_WAIT).await?;
        let started_at = Instant::now();
        let mut stream = self.start(caller, live, &request).await?;
        let pid = stream.pid();
        let cwd = stream.identity().cwd.clone();
        let mut killer = KillOnDrop::new(self, live, pid);
        let max_output = request.max_output.unwrap_or(self.settings().output_bytes);
        let mut output = OutputBuffer::new(max_output, memory);
        let collect = async {
            while let Some(event) = stream.next().await {
                match event? {
                    ProcessEvent::Data(data) => {
                        self.log(&live.sandbox.id, pid, &data).await;
                        output.push(&data).await;
                    }
                    ProcessEvent::End(end) => return Ok(end),
                    _ => {}
                }
            }
            Err(ServiceError::new(
                ErrorKind::AgentFailed,
                "the sandbox ended while the command ran",
            ))
        };
        let end = match tokio::time::timeout(timeout + GRACE, collect).await {
            Ok(Ok(end)) => {
                killer.disarm();
                end
            }
            Ok(Err(error)) if error.kind != ErrorKind::TimedOut => return Err(error),
            _ => {
                self.note_command(caller, live, &request, pid, None, started_at);
                return Err(timed_out(timeout).partial_output(output.into_partial(pid)));
            }
        };
        let exit_code = end.shell_code();
        self.note_command(caller, live, &request, pid, Some(exit_code), started_at);
        Ok(CommandOutput {
            stdout: output.stdout.finish(),
            stderr: output.stderr.finish(),
            is_truncated: output.is_truncated,
            memory: output.memory,
            exit_code,
            pid,
            cwd,
            duration: started_at.elapsed(),
        })
    }

    /// Starts a command in the background and returns its process id and its directory, if the agent reports that. Its output goes to the
    /// command log.
    pub async fn start_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> Result<(u32, Option<String>)> {
        let started_at = Instant::now();
        let stream = self.start(caller, live, &request).await?;
        let pid = stream.pid();
        let cwd = stream.identity().cwd.clone();
        self.note_command(caller, live, &request, pid, None, started_at);
        self.record_in_background(&live.sandbox, stream);
        Ok((pid, cwd))
    }

    /// Starts a command and returns a stream of its output.
    pub async fn stream_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> Result<ProcessStream> {
        let started_at = Instant::now();
        let stream = self.start(caller, live, &request).await?;
        self.note_command(caller, live, &request, stream.pid(), None, started_at);
        Ok(stream)
    }

    async fn start(
        &self,
        caller: &Caller,
        live: &Live,
        request: &RunRequest,
    ) -> Result<ProcessStream> {
        check(request)?;
        let (cmd, args) = match &request.command {
            Command::Shell(text) => (
                "/bin/bash".to_owned(),
                vec!["-l".to_owned(), "-c".to_owned(), text.clone()],
            ),
            Command::Argv(argv) => {
                let (program, arguments) = argv.split_first().ok_or_else(|| {
                    ServiceError::invalid("command", "`command` is empty: it must name a program")
                })?;
                (program.clone(), arguments.to_vec())
            }
        };
        let start = StartRequest {
            process: ProcessConfig {
                cmd,
                args,
                envs: request.env.clone(),
                cwd: request.cwd.clone(),
            },
            pty: request.terminal.map(|(cols, rows)| Pty {
                size: Some(PtySize {
                    cols: cols.into(),
                    rows: rows.into(),
                }),
            }),
            stdin: Some(request.has_stdin),
            ..StartRequest::default()
        };
        // Before it runs, so that no adoption takes it for a command of a dead server.
        let starting = self.begin_start(&live.sandbox.id);
        let options = StartOptions {
            timeout: request.timeout,
            user: request.user.clone(),
            retain_as: Some(starting.id.clone()),
        };
        let stream = live.agent.start(&start, &options).await.map_err(|error| {
            let error = ServiceError::from(error);
            match error.kind {
                // The agent did not find the program or the working directory.
                ErrorKind::FileNotFound | ErrorKind::Forbidden => {
                    ServiceError::invalid("command", error.message)
                }
                _ => error,
            }
        })?;
        let is_logged = request.is_logged && request.terminal.is_none();
        self.begin_recording(starting, stream.pid(), caller, is_logged);
        Ok(stream)
    }

    /// Adds output of a command to its sandbox's log, if the command is logged.
    pub async fn log(&self, id: &SandboxId, pid: u32, output: &Output) {
        self.record_output(id, pid, None, output, WhenFull::Lose)
            .await;
    }

    /// Records the end of a streamed command. Its start is recorded already.
    pub fn note_exit(
        &self,
        caller: &Caller,
        live: &Live,
        pid: u32,
        exit_code: i32,
        started_at: Instant,
    ) {
        let duration_ms = millis(started_at.elapsed());
        let release = self.end_recording(&live.sandbox.id, pid);
        let command_id = release.as_ref().map(|release| &release.command);
        self.history().add(self.event(
            &live.sandbox,
            "command_ended",
            caller,
            json!({"pid": pid, "exit_code": exit_code, "duration_ms": duration_ms, "command_id": command_id}),
        ));
        self.release_soon(&live.sandbox.id, release);
    }

    fn note_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: &RunRequest,
        pid: u32,
        exit_code: Option<i32>,
        started_at: Instant,
    ) {
        let text = match &request.command {
            Command::Shell(text) => text.clone(),
            Command::Argv(argv) => argv.join(" "),
        };
        let text: String = text.chars().take(MAX_SHOWN).collect();
        let duration_ms = millis(started_at.elapsed());
        let id = &live.sandbox.id;
        let release = exit_code.and_then(|_| self.end_recording(id, pid));
        let command_id = match &release {
            Some(release) => Some(release.command.clone()),
            None => {
                let command = self.command_logs().running_command(id, pid);
                command.map(|command| command.id)
            }
        };
        self.history().add(self.event(
            &live.sandbox,
            "command",
            caller,
            json!({
                "command": text,
                "pid": pid,
                "exit_code": exit_code,
                "duration_ms": duration_ms,
                "command_id": command_id,
            }),
        ));
        self.release_soon(id, release);
    }
}

fn timed_out(timeout: Duration) -> ServiceError {
    ServiceError::timed_out(format!(
        "the command did not end within {} s and was killed",
        timeout.as_secs_f64()
    ))
    .hint("give a longer `timeout`, or run it in the background")
}

fn check(request: &RunRequest) -> Result<()> {
    check_map("env", &request.env)?;
    let parts: Vec<&String> = match &request.command {
        Command::Shell(text) => vec![text],
        Command::Argv(argv) => argv.iter().collect(),
    };
    if parts.iter().any(|part| part.contains('\0')) {
        return Err(ServiceError::invalid(
            "command",
            "`command` must not contain a NUL byte",
        ));
    }
    let has_nul = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\0'));
    if has_nul(&request.cwd) {
        return Err(ServiceError::invalid(
            "cwd",
            "`cwd` must not contain a NUL byte",
        ));
    }
    if has_nul(&request.user) {
        return Err(ServiceError::invalid(
            "user",
            "`user` must not contain a NUL byte",
        ));
    }
    Ok(())
}

/// Kills a command in the foreground whose client has disconnected.
struct KillOnDrop {
    service: Service,
    sandbox: Sandbox,
    agent: AgentClient,
    pid: u32,
    is_armed: bool,
}

impl KillOnDrop {
    fn new(service: &Service, live: &Live, pid: u32) -> Self {
        Self {
            service: service.clone(),
            sandbox: live.sandbox.clone(),
            agent: live.agent.clone(),
            pid,
            is_armed: true,
        }
    }

    fn disarm(&mut self) {
        self.is_armed = false;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let (agent, pid) = (self.agent.clone(), self.pid);
        let (service, sandbox) = (self.service.clone(), self.sandbox.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // It may have ended meanwhile.
                let _ = agent.signal(ProcessSelector::Pid(pid), Signal::KILL).await;
                service.record_rest(&sandbox, pid);
            });
        }
    }
}
