//! A command that belongs to a request and ends with it.

use std::fmt;
use std::time::{Duration, Instant};

use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{ProcessSelector, Signal};
use sandyard_agent_client::{AgentClient, ClientError, ProcessIdentity, ProcessStream};
use sandyard_core::{Caller, SandboxId};
use sandyard_service::{Live, RunRequest, Service, ServiceResult};
use tokio::sync::Notify;

/// How often input makes the server look whether the sandbox is paused.
const WAKE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A running command. Dropping it kills the command with all its children, unless it has ended or was left.
pub(crate) struct Child {
    service: Service,
    /// Keeps the sandbox awake.
    live: Live,
    /// None once it has ended.
    process: Option<ProcessStream>,
    pid: u32,
    identity: ProcessIdentity,
    /// Where in the command's output this client's part begins; none: the agent does not tell.
    output_offset: Option<u64>,
    caller: Caller,
    began: Instant,
    is_left: bool,
    /// Whether this request started it; who started it records its output and its end.
    is_started_here: bool,
    /// Output that was taken from the agent and is not in the log yet: kept here, so that nothing is lost when waiting for
    /// the log is cancelled.
    unlogged: Option<Output>,
}

impl Child {
    /// Starts a command.
    pub(crate) async fn start(
        service: &Service,
        caller: &Caller,
        live: Live,
        request: RunRequest,
    ) -> ServiceResult<Self> {
        let process = service.stream_command(caller, &live, request).await?;
        let mut child = Self::attach(service, caller, live, process);
        child.is_started_here = true;
        Ok(child)
    }

    /// Follows a command that another request started. Its output goes to this client alone.
    pub(crate) fn attach(
        service: &Service,
        caller: &Caller,
        live: Live,
        process: ProcessStream,
    ) -> Self {
        let identity = process.identity().clone();
        Self {
            service: service.clone(),
            live,
            pid: process.pid(),
            output_offset: process.begins_at(),
            identity,
            process: Some(process),
            caller: caller.clone(),
            began: Instant::now(),
            is_left: false,
            is_started_here: false,
            unlogged: None,
        }
    }

    /// Its process id inside.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What its agent tells of it.
    pub(crate) fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Where in the command's output this client's part begins; none: the agent does not tell.
    pub(crate) fn output_offset(&self) -> Option<u64> {
        self.output_offset
    }

    /// Wakes its sandbox when somebody writes to it.
    pub(crate) fn input_waker(&self) -> InputWaker {
        InputWaker {
            service: self.service.clone(),
            caller: self.caller.clone(),
            id: self.live.sandbox.id.clone(),
        }
    }

    /// Names it to its agent.
    pub(crate) fn selector(&self) -> ProcessSelector {
        ProcessSelector::Pid(self.pid)
    }

    /// The agent it runs under.
    pub(crate) fn agent(&self) -> &AgentClient {
        &self.live.agent
    }

    /// Waits for output or the end; none after that. Loses nothing when cancelled.
    pub(crate) async fn next(&mut self) -> Option<Result<ProcessEvent, ClientError>> {
        if self.unlogged.is_none() {
            let event = self.process.as_mut()?.next().await;
            match event {
                Some(Ok(ProcessEvent::Data(output))) if self.is_started_here => {
                    self.unlogged = Some(output);
                }
                event => {
                    self.note_end(event.as_ref());
                    return event;
                }
            }
        }
        if let Some(output) = &self.unlogged {
            let logged = self.service.log(&self.live.sandbox.id, self.pid, output);
            logged.await;
        }
        let output = self.unlogged.take()?;
        Some(Ok(ProcessEvent::Data(output)))
    }

    fn note_end(&mut self, event: Option<&Result<ProcessEvent, ClientError>>) {
        match event {
            Some(Ok(ProcessEvent::End(end))) => {
                if self.is_started_here {
                    let code = end.shell_code();
                    self.service
                        .note_exit(&self.caller, &self.live, self.pid, code, self.began);
                }
                self.process = None;
            }
            None => self.process = None,
            _ => {}
        }
    }

    /// Lets it run on when we go; what it writes then still goes to the log.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let (Some(process), Ok(runtime)) =
            (self.process.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        if self.is_left && !self.is_started_here {
            return;
        }
        let (service, sandbox) = (self.service.clone(), self.live.sandbox.clone());
        if self.is_left && self.unlogged.is_none() {
            service.record_in_background(&sandbox, process);
            return;
        }
        if self.is_left {
            // From where the log ends, which is before what this stream has handed out.
            service.record_rest(&sandbox, self.pid);
            return;
        }
        let (agent, selector, pid) = (self.agent().clone(), self.selector(), self.pid);
        let is_started_here = self.is_started_here;
        runtime.spawn(async move {
            // One that has just ended by itself is no failure.
            if let Err(error) = agent.signal(selector, Signal::KILL).await {
                tracing::debug!(%error, "Command of a client that is gone was not killed");
            }
            if is_started_here {
                service.record_rest(&sandbox, pid);
            }
        });
    }
}

/// Wakes a sandbox that was paused under an open stream, when its client sends input.
#[derive(Debug)]
pub(crate) struct InputWaker {
    service: Service,
    caller: Caller,
    id: SandboxId,
}

impl InputWaker {
    /// Looks after every piece of input, at most a few times a second, whether the sandbox has to be woken. Never returns.
    ///
    /// It runs beside the input's own path: input is written at once to a sandbox that runs, and waits in its socket for one that
    /// wakes.
    pub(crate) async fn wake_on(self, input: &Notify) {
        loop {
            input.notified().await;
            if let Err(error) = self.service.wake_for_input(&self.caller, &self.id).await {
                tracing::debug!(%error, sandbox.id = %self.id, "Input did not wake the sandbox");
            }
            tokio::time::sleep(WAKE_CHECK_INTERVAL).await;
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("sandbox", &self.live.sandbox.id)
            .field("pid", &self.pid)
            .field("is_left", &self.is_left)
            .finish_non_exhaustive()
    }
}
