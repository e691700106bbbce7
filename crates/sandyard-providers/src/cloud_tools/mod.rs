//! The tool server in sandboxes of somebody's cloud, where no agent of ours hands connections over.
//!
//! ```text
//!  MCP client ─▶ server ─ dial 6060 ─▶ the cloud's proxy ─▶ inside: 9984, our program, which asks for a token of its own
//!                            │
//!                            ├─ it proves that it is ours: go there, with the token
//!                            ├─ somebody else listens on 6060: go there, without it
//!                            └─ nobody: bring the program in, start it, go there
//! ```
//!
//! All it needs is the agent, whoever's that is: a command that looks, one that starts, and two files. So it is the same for
//! every cloud, and the cloud's own way to ports stays the cloud's.
//!
//! **A port of its own.** The tool server is on 6060 for programs inside, as everywhere. From outside it is reached on 9984,
//! for two reasons: a template's or user's own program on 6060 stays what it is, and a cloud may have something of its own on
//! 6060 (another Sandyard has, and lets nobody in without a credential of its own).
//!
//! **Who is let in.** The server alone has the token: it is worked out from the sandbox's access token, so that it is the same
//! after a restart, and tells nothing about that one. Inside only its hash is known. It is shown to nobody who has not proved
//! that hash: any program may take a port.
//!
//! | file | holds |
//! |---|---|
//! | `token` | what is shown, and what is proved |
//! | `proof` | asking who is there |
//! | `scripts` | what is run inside |
//! | `seen` | what that says |
//! | `bring` | looking, bringing the program in, starting it |
//! | `memory` | what was found a moment ago, how often it was started |
//! | `problem` | why there is none |
//! | `program` | the program that is brought in |
//! | `content` | its bytes, whatever becomes of its path |

mod content;
mod inspection;
mod install;
mod problem;
mod program;
mod proof;
mod scripts;
mod state;
mod token;

use std::fmt;
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

/// Where the cloud's proxy finds our tool server. Daytona's has led to ports from 3000 to 9999 only, and this one is nobody's.
pub(crate) const DOOR: u16 = 9984;

/// How long the first dial may take: the program is tens of megabytes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long all of looking and bringing may take, after which somebody else may try: more than what it consists of may take.
const WHOLE_TIME: Duration = Duration::from_secs(600);

/// What all sandboxes of a provider have in common.
#[derive(Debug)]
pub(crate) struct ToolServerInstaller {
    path: PathBuf,
    /// Read when it is first needed: a provider whose sandboxes use no tools need not.
    program: OnceCell<Program>,
    /// Where users find the tool server.
    port: u16,
}

impl ToolServerInstaller {
    /// One that brings the program at that path in; none where that is an agent and nothing else.
    pub(crate) fn new(path: PathBuf, port: u16) -> Option<Self> {
        (!program::is_only_an_agent(&path)).then(|| Self {
            path,
            program: OnceCell::new(),
            port,
        })
    }

    /// The same for one that was read already.
    pub(crate) fn of(program: Program, port: u16) -> Option<Self> {
        let kit = Self::new(program.path().to_owned(), port)?;
        Some(Self {
            program: OnceCell::new_with(Some(program)),
            ..kit
        })
    }

    async fn program(&self) -> Result<&Program> {
        let open = || Program::open(&self.path);
        self.program.get_or_try_init(open).await
    }
}

/// Opens a connection to a port by the cloud's own way, `open`; to the tool server's port wherever that leads.
pub(crate) async fn dial<F>(
    tools: Option<&ToolServer>,
    port: u16,
    open: impl Fn(u16) -> F,
) -> io::Result<PortStream>
where
    F: Future<Output = io::Result<PortStream>>,
{
    let Some(tools) = tools.filter(|tools| tools.kit.port == port) else {
        return open(port).await;
    };
    if !tools.is_ours().await? {
        return open(port).await;
    }
    let mut dialled = open(DOOR).await?;
    let name = HeaderName::from_static(ACCESS_TOKEN);
    let value = tools.token.header().map_err(io::Error::other)?;
    // In place of whatever the client has put there.
    dialled.headers.insert(name, value);
    Ok(dialled)
}

/// The tool server of one sandbox.
#[derive(Clone)]
pub(crate) struct ToolServer {
    kit: Arc<ToolServerInstaller>,
    /// Its ports are the cloud's own: it knows nothing of this.
    agent: AgentClient,
    token: Token,
    /// The token that programs inside may have.
    access_token: String,
    memory: Arc<ToolServerState>,
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl ToolServer {
    /// That of the sandbox with this access token; none where it has none, as anybody could work out what is to be shown then.
    /// The agent must lead to ports without coming here.
    pub(crate) fn new(
        kit: Arc<ToolServerInstaller>,
        agent: AgentClient,
        id: &str,
        access_token: &str,
        memory: Arc<ToolServerState>,
    ) -> Option<Self> {
        Some(Self {
            token: Token::of(id, access_token)?,
            access_token: access_token.to_owned(),
            kit,
            agent,
            memory,
        })
    }

    /// Says whether it is ours that is to be gone to, and sees to it that it is there. If not, whoever listens on the port that
    /// was asked for is meant, and gets nothing of ours.
    async fn is_ours(&self) -> io::Result<bool> {
        if let Some(is_ours) = self.memory.recent(&self.token) {
            return Ok(is_ours);
        }
        let asked = Instant::now();
        let starting = self.memory.starting.clone().lock_owned().await;
        if let Some(found) = self.memory.since(asked, &self.token) {
            return found.map_err(Problem::told);
        }
        // In a task of its own: whoever asked may leave, and what takes long need not begin again.
        let this = self.clone();
        let found = tokio::spawn(async move {
            let _starting = starting;
            this.ensure().await
        });
        found
            .await
            .map_err(io::Error::other)?
            .map_err(Problem::told)
    }

    /// Finds out who is there, and starts ours if nobody is; says whether it is ours. Whoever calls holds `starting`.
    async fn ensure(&self) -> std::result::Result<bool, Problem> {
        let found = tokio::time::timeout(WHOLE_TIME, self.look_and_bring()).await;
        let found =
            found.unwrap_or_else(|_| Err(Problem::late("be looked for and started", WHOLE_TIME)));
        self.memory.note(&self.token, found.clone());
        found
    }

    async fn look_and_bring(&self) -> std::result::Result<bool, Problem> {
        match proof::ask(&self.agent, &self.token).await? {
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

    /// A way on which nothing ever comes back: its far ends.
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
        let kit = Arc::new(
            ToolServerInstaller::new("/nothing".into(), 6060).expect("not an agent alone"),
        );
        let agent = AgentClient::patient(Endpoint::Custom(Arc::new(Silence::default())));
        ToolServer::new(kit, agent, "id", access_token, Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_borne_for_a_while_and_holds_up_nobody_else() {
        let tools = silent("secret").expect("a tool server");
        let told = tools
            .send_settings(&inspection::Inspection::default(), "/settings")
            .await;
        assert_eq!(told.expect_err("silence").code, Code::Aborted);
        let sent = tools.send(futures_util::stream::pending(), "/part").await;
        assert_eq!(sent.expect_err("silence").code, Code::Aborted);
        // Who asked leaves, and who comes next has its turn.
        let left = tokio::time::timeout(Duration::from_millis(1), tools.is_ours()).await;
        assert!(left.is_err());
        assert!(tools.memory.starting.try_lock().is_err());
        assert!(tools.is_ours().await.is_err());
        assert!(tools.memory.starting.try_lock().is_ok());
    }

    #[test]
    fn without_an_access_token_there_is_none() {
        assert!(silent("").is_none());
    }
}
