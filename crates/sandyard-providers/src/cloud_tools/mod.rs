//! The tool server in sandboxes of a cloud, where the agent does not hand over connections.
//!
//! ```text
//!  MCP client ─▶ server ─ dial 6060 ─▶ the cloud's proxy ─▶ sandbox: 9984, the tool server, which requires its own token
//!                            │
//!       ├─ it proves that it is this installation's: connect with the token
//!       ├─ another program listens on 6060: connect without the token
//!       └─ nothing listens: install the program, start it, connect
//! ```
//!
//! It only needs an agent, of any kind: one command that inspects, one that starts, and two files. So it is the same for every
//! cloud, and each cloud opens connections to ports in its own way.
//!
//! **Its own port.** For programs in the sandbox the tool server is on 6060, as everywhere. From outside it is reached on 9984, for
//! two reasons: a template's or user's own program on 6060 stays reachable, and a cloud may use 6060 itself (another Sandyard does,
//! and requires its own credentials there).
//!
//! **Authentication.** Only the server has the token: it is derived from the sandbox's access token, so that it is the same after a
//! restart, and does not reveal the access token. The sandbox knows only its hash. The token is never sent to a program that has
//! not proved that it knows the hash: any program may take a port.
//!
//! | file | contents |
//! |---|---|
//! | `token` | the token, and the proof that a tool server gives |
//! | `proof` | asks the listening program for its proof |
//! | `scripts` | the scripts that run in the sandbox |
//! | `inspection` | the report of the inspection script |
//! | `install` | inspects, sends the program, starts it |
//! | `state` | the last result, and the number of starts |
//! | `problem` | why there is no tool server |
//! | `program` | the program that is sent |
//! | `content` | the program's bytes, whatever happens to its path |

mod content;
mod inspection;
mod install;
mod problem;
mod program;
mod proof;
mod scripts;
mod state;
mod token;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderName;
use sandyard_agent_client::wire::routes::header::ACCESS_TOKEN;
use sandyard_agent_client::{AgentClient, PortStream};
use sandyard_provider::Result;
use tokio::sync::OnceCell;

pub(crate) use program::Program;
pub(crate) use state::ToolServerState;

use problem::Problem;
use proof::Answer;
use token::Token;

/// Port on which the cloud's proxy reaches the tool server. Daytona's proxy accepts ports from 3000 to 9999; no known program uses
/// this one.
pub(crate) const TOOL_SERVER_PORT: u16 = 9984;

/// Timeout of the first dial: the program is tens of megabytes.
pub(crate) const FIRST_DIAL_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout of the entire installation, longer than all of its steps.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Installs the tool server; shared by all sandboxes of a provider.
#[derive(Debug)]
pub(crate) struct ToolServerInstaller {
    path: PathBuf,
    /// Read when first needed: sandboxes that use no tools do not need it.
    program: OnceCell<Program>,
    /// Port on which users reach the tool server.
    port: u16,
}

impl ToolServerInstaller {
    /// Installs the program at `path`; `None` when that is only an agent.
    pub(crate) fn new(path: PathBuf, port: u16) -> Option<Self> {
        (!program::is_only_an_agent(&path)).then(|| Self {
            path,
            program: OnceCell::new(),
            port,
        })
    }

    /// The same for a program that was read already.
    pub(crate) fn of(program: Program, port: u16) -> Option<Self> {
        let installer = Self::new(program.path().to_owned(), port)?;
        Some(Self {
            program: OnceCell::new_with(Some(program)),
            ..installer
        })
    }

    async fn program(&self) -> Result<&Program> {
        let open = || Program::open(&self.path);
        self.program.get_or_try_init(open).await
    }
}

/// Opens a connection to a port with `open`; for the tool server's port, to whatever serves it.
pub(crate) async fn dial<F>(
    tools: Option<&ToolServer>,
    port: u16,
    open: impl Fn(u16) -> F,
) -> io::Result<PortStream>
where
    F: Future<Output = io::Result<PortStream>>,
{
    let Some(tools) = tools.filter(|tools| tools.installer.port == port) else {
        return open(port).await;
    };
    if !tools.is_ours().await? {
        return open(port).await;
    }
    let mut dialled = open(TOOL_SERVER_PORT).await?;
    let name = HeaderName::from_static(ACCESS_TOKEN);
    let value = tools.token.header().map_err(io::Error::other)?;
    // Replaces a token that the client sent.
    dialled.headers.insert(name, value);
    Ok(dialled)
}

/// The tool server of one sandbox.
#[derive(Clone)]
pub(crate) struct ToolServer {
    installer: Arc<ToolServerInstaller>,
    /// Its `dial` opens ports of the cloud without this module.
    agent: AgentClient,
    token: Token,
    /// The access token of the sandbox, which programs in it may have.
    access_token: String,
    state: Arc<ToolServerState>,
}

sandyard_core::debug_fields!(ToolServer: agent);

impl ToolServer {
    /// The tool server of a sandbox. `None` without an access token, because its token could then be computed by anyone. `agent`
    /// must dial ports without this module.
    pub(crate) fn new(
        installer: Arc<ToolServerInstaller>,
        agent: AgentClient,
        id: &str,
        access_token: &str,
        state: Arc<ToolServerState>,
    ) -> Option<Self> {
        Some(Self {
            token: Token::of(id, access_token)?,
            access_token: access_token.to_owned(),
            installer,
            agent,
            state,
        })
    }

    /// Makes sure that the tool server runs; returns whether it is this installation's. If not, the connection belongs to the
    /// program that listens on the requested port, and must not get the token.
    async fn is_ours(&self) -> io::Result<bool> {
        if let Some(is_ours) = self.state.recent(&self.token) {
            return Ok(is_ours);
        }
        let requested_at = Instant::now();
        let starting = self.state.starting.clone().lock_owned().await;
        if let Some(outcome) = self.state.since(requested_at, &self.token) {
            return outcome.map_err(Problem::into_io);
        }
        // On its own task, so that the work continues when the caller gives up.
        let this = self.clone();
        let outcome = tokio::spawn(async move {
            let _starting = starting;
            this.ensure().await
        });
        outcome
            .await
            .map_err(io::Error::other)?
            .map_err(Problem::into_io)
    }

    /// Finds the tool server or installs it; returns whether it is this installation's. The caller holds `starting`.
    async fn ensure(&self) -> std::result::Result<bool, Problem> {
        let outcome = tokio::time::timeout(INSTALL_TIMEOUT, self.find_or_install()).await;
        let outcome = outcome
            .unwrap_or_else(|_| Err(Problem::timed_out("be found or started", INSTALL_TIMEOUT)));
        self.state.record(&self.token, outcome.clone());
        outcome
    }

    async fn find_or_install(&self) -> std::result::Result<bool, Problem> {
        match proof::request_proof(&self.agent, &self.token).await? {
            Answer::Proof => Ok(true),
            answer => self.install(answer == Answer::AnotherProof).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use sandyard_agent_client::wire::Code;
    use sandyard_agent_client::{Dial, Dialling, Endpoint, PortDialling};
    use tokio::io::DuplexStream;

    use super::*;

    /// A connection on which nothing is ever received, with its far ends.
    #[derive(Default)]
    struct Silence(Mutex<Vec<DuplexStream>>);

    impl Silence {
        fn open(&self) -> DuplexStream {
            let (near, far) = tokio::io::duplex(1 << 20);
            self.0.lock().expect("no panic").push(far);
            near
        }
    }

    impl Dial for Silence {
        fn name(&self) -> &str {
            "silence"
        }

        fn dial(&self) -> Dialling<'_> {
            Box::pin(async { Ok(Box::new(self.open()) as _) })
        }

        fn dial_port(&self, _: u16) -> Option<PortDialling<'_>> {
            Some(Box::pin(async {
                Ok(PortStream {
                    stream: Box::new(self.open()),
                    headers: http::HeaderMap::new(),
                })
            }))
        }
    }

    fn silent(access_token: &str) -> Option<ToolServer> {
        let installer = Arc::new(
            ToolServerInstaller::new("/nothing".into(), 6060).expect("not an agent alone"),
        );
        let agent = AgentClient::patient(Endpoint::Custom(Arc::new(Silence::default())));
        ToolServer::new(installer, agent, "id", access_token, Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_times_out_and_the_next_caller_gets_its_turn() {
        let tools = silent("secret").expect("a tool server");
        let settings = tools
            .send_settings(&inspection::Inspection::default(), "/settings")
            .await;
        assert_eq!(settings.expect_err("silence").code, Code::Aborted);
        let upload = tools.send(futures_util::stream::pending(), "/part").await;
        assert_eq!(upload.expect_err("silence").code, Code::Aborted);
        // The task continues after its caller gave up, and the next caller waits for it.
        let caller = tokio::time::timeout(Duration::from_millis(1), tools.is_ours()).await;
        assert!(caller.is_err());
        assert!(tools.state.starting.try_lock().is_err());
        assert!(tools.is_ours().await.is_err());
        assert!(tools.state.starting.try_lock().is_ok());
    }

    #[test]
    fn without_an_access_token_there_is_no_tool_server() {
        assert!(silent("").is_none());
    }
}
