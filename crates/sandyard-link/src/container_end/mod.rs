//! The container's end of a link: what `docker exec` runs.

mod agent;
mod egress;
mod stdio;
mod watchdog;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sandyard_agent_client::Endpoint;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::splice;
use crate::{LinkStream, Mux, Side, StreamKind};
use watchdog::Watchdog;

/// Where the agent of a container listens for the host.
pub const AGENT_SOCKET: &str = "/run/sandyard/agent.sock";

/// Runs the program with its arguments, without the names of the program and of the role; returns the exit code.
///
/// Standard output belongs to the link. The program has one thread, and ends when standard input ends or the server is gone.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let ended = agent_socket(arguments).and_then(|agent| {
        let stream = stdio::take()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let stream = stdio::register(stream)?;
            serve(stream, &agent).await;
            Ok(())
        })
    });
    match ended {
        Ok(()) => 0,
        Err(error) => {
            let _ =
                io::Write::write_fmt(&mut io::stderr(), format_args!("sandyard link: {error}\n"));
            1
        }
    }
}

fn agent_socket(mut arguments: impl Iterator<Item = OsString>) -> io::Result<PathBuf> {
    let misused = || io::Error::new(io::ErrorKind::InvalidInput, "usage: link [--agent PATH]");
    match (arguments.next(), arguments.next(), arguments.next()) {
        (None, _, _) => Ok(AGENT_SOCKET.into()),
        (Some(option), Some(path), None) if option == "--agent" => Ok(path.into()),
        _ => Err(misused()),
    }
}

/// What the connections of a link share.
struct ContainerEnd {
    mux: Mux,
    agent: PathBuf,
    watchdog: Watchdog,
}

/// Serves one link to its end.
pub async fn serve<S>(stream: S, agent: &Path)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mux, mut inbound) = Mux::start(stream, Side::Container);
    let end = Rc::new(ContainerEnd {
        mux,
        agent: agent.to_owned(),
        watchdog: Watchdog::default(),
    });
    let tasks = tokio::task::LocalSet::new();
    let serving = tasks.run_until(async {
        while let Some(stream) = inbound.next().await {
            let end = end.clone();
            tokio::task::spawn_local(async move {
                // Both ends of a broken connection see the error themselves.
                let _ = end.serve(stream).await;
            });
        }
    });
    tokio::select! {
        () = serving => {}
        () = end.watchdog.expired() => {}
    }
    end.mux.close();
}

impl ContainerEnd {
    async fn serve(&self, mut stream: LinkStream) -> io::Result<()> {
        match StreamKind::from_byte(stream.read_u8().await?) {
            Some(StreamKind::Agent) => {
                let socket = agent::connect(&self.agent).await?;
                splice::unix(socket, stream).await
            }
            Some(StreamKind::Egress) => {
                // Wait until the agent listens.
                drop(agent::connect(&self.agent).await?);
                egress::serve(&self.mux, Endpoint::Unix(self.agent.clone()), stream).await
            }
            Some(StreamKind::Ping) => self.pong(stream).await,
            Some(StreamKind::Outgoing) | None => Ok(()),
        }
    }

    /// Echoes the server's pings.
    async fn pong(&self, mut stream: LinkStream) -> io::Result<()> {
        loop {
            let byte = stream.read_u8().await?;
            self.watchdog.reset();
            stream.write_u8(byte).await?;
            stream.flush().await?;
        }
    }
}
