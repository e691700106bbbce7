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
    is_logged: bool,
    /// Whether this request started it; who started it records its end.
    is_started_here: bool,
}

impl Child {
    /// Starts a command.
    pub(crate) async fn start(
        service: &Service,
        caller: &Caller,
        live: Live,
        request: RunRequest,
    ) -> ServiceResult<Self> {
        let is_logged = request.terminal.is_none();
        let process = service.stream_command(caller, &live, request).await?;
        let mut child = Self::attach(service, caller, live, process);
        child.is_logged = is_logged;
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
            output_offset: identity.has_output_offset.then(|| process.output_offset()),
            identity,
            process: Some(process),
            caller: caller.clone(),
            began: Instant::now(),
            is_left: false,
            is_logged: false,
            is_started_here: false,
        }
    }

    /// Keeps its output out of the sandbox's log, for what is no text.
    pub(crate) fn unlogged(mut self) -> Self {
        self.is_logged = false;
        self
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
        let event = self.process.as_mut()?.next().await;
        match &event {
            Some(Ok(ProcessEvent::Data(output))) if self.is_logged => {
                self.service.log(&self.live.sandbox.id, self.pid, output);
            }
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
        event
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
        if self.is_left && !self.is_logged {
            return;
        }
        if self.is_left {
            let id = self.live.sandbox.id.clone();
            runtime.spawn(log_rest(self.service.clone(), id, process));
            return;
        }
        let (agent, selector) = (self.agent().clone(), self.selector());
        runtime.spawn(async move {
            // One that has just ended by itself is no failure.
            if let Err(error) = agent.signal(selector, Signal::KILL).await {
                tracing::debug!(%error, "Command of a client that is gone was not killed");
            }
        });
    }
}

/// Follows a command that nobody waits for. It does not keep its sandbox awake.
async fn log_rest(service: Service, id: SandboxId, mut process: ProcessStream) {
    let pid = process.pid();
    while let Some(Ok(event)) = process.next().await {
        if let ProcessEvent::Data(output @ (Output::Stdout(_) | Output::Stderr(_))) = event {
            service.log(&id, pid, &output);
        }
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
