//! A command that belongs to a request and ends with it.

use std::time::{Duration, Instant};

use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{ProcessSelector, Signal};
use sandyard_agent_client::{AgentClient, ClientError, ProcessIdentity, ProcessStream};
use sandyard_core::SandboxId;
use sandyard_service::{Live, RunRequest, ServiceResult};
use tokio::sync::Notify;

use crate::call::Call;

/// Pause between two checks whether input has to wake the sandbox.
const WAKE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A running command. Dropping it kills the command with all its children, unless it has ended or is detached.
pub(crate) struct Child {
    call: Call,
    /// Keeps the sandbox awake.
    live: Live,
    /// None once the command has ended.
    process: Option<ProcessStream>,
    pid: u32,
    identity: ProcessIdentity,
    /// Position in the command's output at which this client's part begins; none: the agent does not report it.
    output_offset: Option<u64>,
    started_at: Instant,
    is_detached: bool,
    /// Whether this request started the command, and so records its output and its end.
    is_started_here: bool,
    /// Output that was read from the agent and is not in the log yet. It stays here so that a cancelled wait for the log loses nothing.
    unlogged: Option<Output>,
}

impl Child {
    /// Starts a command.
    pub(crate) async fn start(call: &Call, live: Live, request: RunRequest) -> ServiceResult<Self> {
        let service = call.service();
        let process = service.stream_command(&call.caller, &live, request).await?;
        let mut child = Self::attach(call, live, process);
        child.is_started_here = true;
        Ok(child)
    }

    /// Follows a command that another request started. Its output goes to this client alone.
    pub(crate) fn attach(call: &Call, live: Live, process: ProcessStream) -> Self {
        let identity = process.identity().clone();
        Self {
            call: call.clone(),
            live,
            pid: process.pid(),
            output_offset: process.begins_at(),
            identity,
            process: Some(process),
            started_at: Instant::now(),
            is_detached: false,
            is_started_here: false,
            unlogged: None,
        }
    }

    /// Its process id inside the sandbox.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What the agent reports about the process.
    pub(crate) fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Position in the command's output at which this client's part begins; none: the agent does not report it.
    pub(crate) fn output_offset(&self) -> Option<u64> {
        self.output_offset
    }

    /// Wakes the sandbox when the client sends input.
    pub(crate) fn input_waker(&self) -> InputWaker {
        InputWaker {
            call: self.call.clone(),
            id: self.live.sandbox.id.clone(),
        }
    }

    /// The agent's name for the process.
    pub(crate) fn selector(&self) -> ProcessSelector {
        ProcessSelector::Pid(self.pid)
    }

    /// The agent it runs under.
    pub(crate) fn agent(&self) -> &AgentClient {
        &self.live.agent
    }

    /// Waits for output or the end; none after the end. Cancelling it loses nothing.
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
            let service = self.call.service();
            service.log(&self.live.sandbox.id, self.pid, output).await;
        }
        let output = self.unlogged.take()?;
        Some(Ok(ProcessEvent::Data(output)))
    }

    fn note_end(&mut self, event: Option<&Result<ProcessEvent, ClientError>>) {
        match event {
            Some(Ok(ProcessEvent::End(end))) => {
                if self.is_started_here {
                    let code = end.shell_code();
                    let (service, caller) = (self.call.service(), &self.call.caller);
                    service.note_exit(caller, &self.live, self.pid, code, self.started_at);
                }
                self.process = None;
            }
            None => self.process = None,
            _ => {}
        }
    }

    /// Lets the command continue when this is dropped. Its later output still goes to the log.
    pub(crate) fn detach(&mut self) {
        self.is_detached = true;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let (Some(process), Ok(runtime)) =
            (self.process.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        if self.is_detached && !self.is_started_here {
            return;
        }
        let (service, sandbox) = (self.call.service().clone(), self.live.sandbox.clone());
        if self.is_detached && self.unlogged.is_none() {
            service.record_in_background(&sandbox, process);
            return;
        }
        if self.is_detached {
            // Continues where the log ends, which is before the output that this stream has returned.
            service.record_rest(&sandbox, self.pid);
            return;
        }
        let (agent, selector, pid) = (self.agent().clone(), self.selector(), self.pid);
        let is_started_here = self.is_started_here;
        runtime.spawn(async move {
            // The command may have just ended.
            if let Err(error) = agent.signal(selector, Signal::KILL).await {
                tracing::debug!(%error, "Cannot kill the command of a client that has disconnected");
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
    call: Call,
    id: SandboxId,
}

impl InputWaker {
    /// After every input, at most a few times per second, wakes the sandbox if it is paused. Never returns.
    ///
    /// Input does not wait for this: it is written at once to a running sandbox, and waits in the socket of one that wakes.
    pub(crate) async fn wake_on(self, input: &Notify) {
        loop {
            input.notified().await;
            let (service, caller) = (self.call.service(), &self.call.caller);
            if let Err(error) = service.wake_for_input(caller, &self.id).await {
                tracing::debug!(%error, sandbox.id = %self.id, "Input did not wake the sandbox");
            }
            tokio::time::sleep(WAKE_CHECK_INTERVAL).await;
        }
    }
}
