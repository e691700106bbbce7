//! Runs commands.

use std::time::{Duration, Instant};

use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{
    ProcessConfig, ProcessSelector, Pty, PtySize, Signal, StartRequest,
};
use sandyard_agent_client::{AgentClient, ProcessStream, StartOptions};
use sandyard_core::{Caller, ErrorKind, SandboxId};
use sandyard_store::model::Sandbox;
use serde_json::json;

use super::create::check_map;
use super::kept_output::Kept;
use super::live::Live;
use crate::claim::millis;
use crate::command_log::WhenFull;
use crate::error::{ServiceError, ServiceResult};
use crate::memory::PATIENCE;
use crate::request::{Command, CommandOutput, RunRequest};
use crate::service::Service;

/// Time given to an agent beyond a command's own, for killing it and for saying so.
const GRACE: Duration = Duration::from_secs(10);
/// What the buffers between an answer and its client use, beside the output itself.
const ANSWER_BUFFERS: usize = 64 << 10;
/// Bytes of a command that go into the history.
const MAX_SHOWN: usize = 500;

impl Service {
    /// How long a command that somebody waits for may take.
    ///
    /// # Errors
    ///
    /// More than this server allows was asked for.
    pub fn foreground_timeout(&self, asked: Option<Duration>) -> ServiceResult<Duration> {
        let most = self.settings().max_command_timeout;
        let timeout = asked.unwrap_or(self.settings().command_timeout);
        if timeout <= most {
            return Ok(timeout);
        }
        let problem = format!(
            "a command in the foreground has at most {} s",
            most.as_secs()
        );
        Err(ServiceError::invalid("timeout", problem).hint("run it in the background"))
    }

    /// Runs a command to its end. A time-out kills it with all its children, and so does a caller who hangs up.
    pub async fn run_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> ServiceResult<CommandOutput> {
        let timeout = self.foreground_timeout(request.timeout)?;
        let request = RunRequest {
            timeout: Some(timeout),
            ..request
        };
        let memory = self.memory().hold(&caller.name);
        // Refused before it runs rather than after.
        memory.grow(ANSWER_BUFFERS, PATIENCE).await?;
        let began = Instant::now();
        let mut stream = self.start(caller, live, &request).await?;
        let pid = stream.pid();
        let mut killer = KillOnDrop::new(self, live, pid);
        let max_output = request.max_output.unwrap_or(self.settings().output_bytes);
        let mut kept = Kept::new(max_output, memory);
        let collect = async {
            while let Some(event) = stream.next().await {
                match event? {
                    ProcessEvent::Data(data) => {
                        self.log(&live.sandbox.id, pid, &data).await;
                        kept.keep(&data).await;
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
                self.note_command(caller, live, &request, pid, None, began);
                return Err(timed_out(timeout).partial_output(kept.into_partial(pid)));
            }
        };
        let exit_code = end.shell_code();
        self.note_command(caller, live, &request, pid, Some(exit_code), began);
        Ok(CommandOutput {
            stdout: kept.stdout.finish(),
            stderr: kept.stderr.finish(),
            is_truncated: kept.is_truncated,
            memory: kept.memory,
            exit_code,
            pid,
            duration: began.elapsed(),
        })
    }

    /// Starts a command and leaves it running; its output goes to the log.
    pub async fn start_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> ServiceResult<u32> {
        let began = Instant::now();
        let stream = self.start(caller, live, &request).await?;
        let pid = stream.pid();
        self.note_command(caller, live, &request, pid, None, began);
        self.record_in_background(&live.sandbox, stream);
        Ok(pid)
    }

    /// Starts a command and hands its output over as it comes.
    pub async fn stream_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> ServiceResult<ProcessStream> {
        let began = Instant::now();
        let stream = self.start(caller, live, &request).await?;
        self.note_command(caller, live, &request, stream.pid(), None, began);
        Ok(stream)
    }

    async fn start(
        &self,
        caller: &Caller,
        live: &Live,
        request: &RunRequest,
    ) -> ServiceResult<ProcessStream> {
        check(request)?;
        let (cmd, args) = match &request.command {
            Command::Shell(text) => (
                "/bin/bash".to_owned(),
                vec!["-l".to_owned(), "-c".to_owned(), text.clone()],
            ),
            Command::Argv(argv) => {
                let (program, arguments) = argv.split_first().ok_or_else(|| {
                    ServiceError::invalid("command", "`command` names no program")
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
        // Before it runs: an adoption meanwhile would take it for one whose server is gone.
        let starting = self.begin_start(&live.sandbox.id);
        let options = StartOptions {
            timeout: request.timeout,
            user: request.user.clone(),
            retain_as: Some(starting.id.clone()),
        };
        let stream = live.agent.start(&start, &options).await.map_err(|error| {
            let error = ServiceError::from(error);
            match error.kind {
                // The agent's «not found» is about the program or the folder here.
                ErrorKind::FileNotFound | ErrorKind::Forbidden => {
                    ServiceError::invalid("command", error.message)
                }
                _ => error,
            }
        })?;
        let is_logged = request.is_logged && request.terminal.is_none();
        let command = self.open_command(starting.id.clone(), stream.pid(), caller, is_logged);
        self.begin_recording(starting, command);
        Ok(stream)
    }

    /// Adds output of a command to its sandbox's log, unless it is not to be logged.
    pub async fn log(&self, id: &SandboxId, pid: u32, output: &Output) {
        self.record_output(id, pid, None, output, WhenFull::Lose)
            .await;
    }

    /// Writes down how a streamed command ended; that it began is written already.
    pub fn note_exit(
        &self,
        caller: &Caller,
        live: &Live,
        pid: u32,
        exit_code: i32,
        began: Instant,
    ) {
        let duration_ms = millis(began.elapsed());
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
        began: Instant,
    ) {
        let shown = match &request.command {
            Command::Shell(text) => text.clone(),
            Command::Argv(argv) => argv.join(" "),
        };
        let shown: String = shown.chars().take(MAX_SHOWN).collect();
        let duration_ms = millis(began.elapsed());
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
                "command": shown,
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
    ServiceError::new(
        ErrorKind::TimedOut,
        format!(
            "the command did not end within {} s and was killed",
            timeout.as_secs_f64()
        ),
    )
    .hint("give a longer `timeout`, or run it in the background")
}

fn check(request: &RunRequest) -> ServiceResult<()> {
    check_map("env", &request.env)?;
    let parts: Vec<&String> = match &request.command {
        Command::Shell(text) => vec![text],
        Command::Argv(argv) => argv.iter().collect(),
    };
    if parts.iter().any(|part| part.contains('\0')) {
        return Err(ServiceError::invalid(
            "command",
            "`command` holds a NUL byte",
        ));
    }
    let odd = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\0'));
    if odd(&request.cwd) {
        return Err(ServiceError::invalid("cwd", "`cwd` holds a NUL byte"));
    }
    if odd(&request.user) {
        return Err(ServiceError::invalid("user", "`user` holds a NUL byte"));
    }
    Ok(())
}

/// Kills a command in the foreground whose caller has gone.
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
                // It may have ended by itself meanwhile.
                let _ = agent.signal(ProcessSelector::Pid(pid), Signal::KILL).await;
                service.record_rest(&sandbox, pid);
            });
        }
    }
}
