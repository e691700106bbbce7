//! A command that belongs to a request and ends with it.

use std::fmt;
use std::time::Instant;

use sandyard_agent_client::wire::event::ProcessEvent;
use sandyard_agent_client::wire::process::{ProcessSelector, Signal};
use sandyard_agent_client::{AgentClient, ClientError, ProcessStream};
use sandyard_core::Caller;
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
        Ok(Self {
            service: service.clone(),
            live,
            pid: process.pid(),
            process: Some(process),
            caller: caller.clone(),
            began: Instant::now(),
            is_left: false,
        })
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
            Some(Ok(ProcessEvent::Data(output))) => {
                let logged = self.service.log(&self.live.sandbox.id, self.pid, output);
                logged.await;
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
        let (service, sandbox) = (self.service.clone(), self.live.sandbox.clone());
        if self.is_left {
            service.record_in_background(&sandbox, process);
            return;
        }
        let (agent, selector, pid) = (self.agent().clone(), self.selector(), self.pid);
        runtime.spawn(async move {
            // One that has just ended by itself is no failure.
            if let Err(error) = agent.signal(selector, Signal::KILL).await {
                tracing::debug!(%error, "Command of a client that is gone was not killed");
            }
            service.record_rest(&sandbox, pid);
        });
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
