//! A command that belongs to a request and ends with it.

use std::fmt;
use std::time::Instant;

use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{ProcessSelector, Signal};
use sandyard_agent_client::{AgentClient, ClientError, ProcessStream};
use sandyard_core::{Caller, SandboxId};
use sandyard_service::{Live, RunRequest, Service, ServiceResult};

/// A running command. Dropping it kills the command with all its children, unless it has ended or was left.
pub(crate) struct Child {
    service: Service,
    /// Keeps the sandbox awake.
    live: Live,
    /// None once it has ended.
    process: Option<ProcessStream>,
    pid: u32,
    caller: Caller,
    began: Instant,
    is_left: bool,
    is_logged: bool,
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
        Ok(Self {
            service: service.clone(),
            live,
            pid: process.pid(),
            process: Some(process),
            caller: caller.clone(),
            began: Instant::now(),
            is_left: false,
            is_logged,
        })
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
                let code = end.shell_code();
                self.service
                    .note_exit(&self.caller, &self.live, self.pid, code, self.began);
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

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("sandbox", &self.live.sandbox.id)
            .field("pid", &self.pid)
            .field("is_left", &self.is_left)
            .finish_non_exhaustive()
    }
}
