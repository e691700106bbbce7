//! The container's end of a link: what `docker exec` runs.

mod agent;
mod egress;
mod patience;
mod standard;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sandyard_agent_client::Endpoint;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::splice;
use crate::{Carried, Kind, Mux, Side};
use patience::Patience;

/// Where the agent of a container listens for the host.
pub const AGENT_SOCKET: &str = "/run/sandyard/agent.sock";

/// Runs as a program with its arguments, without the program's own name and that of the role; returns the exit code.
///
/// Standard output is the link's alone. It has one thread, and ends when standard input does or nobody is there any more.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let ended = agent_socket(arguments).and_then(|agent| {
        let stream = standard::take()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let stream = standard::register(stream)?;
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
struct Inside {
    mux: Mux,
    agent: PathBuf,
    patience: Patience,
}

/// Serves one link to its end.
pub async fn serve<S>(stream: S, agent: &Path)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mux, mut inbound) = Mux::start(stream, Side::Container);
    let inside = Rc::new(Inside {
        mux,
        agent: agent.to_owned(),
        patience: Patience::default(),
    });
    let tasks = tokio::task::LocalSet::new();
    let serving = tasks.run_until(async {
        while let Some(carried) = inbound.next().await {
            let inside = inside.clone();
            tokio::task::spawn_local(async move {
                // A connection that breaks is its two ends' affair.
                let _ = inside.answer(carried).await;
            });
        }
    });
    tokio::select! {
        () = serving => {}
        () = inside.patience.until_lost() => {}
    }
    inside.mux.close();
}

impl Inside {
    async fn answer(&self, mut carried: Carried) -> io::Result<()> {
        match Kind::from_byte(carried.read_u8().await?) {
            Some(Kind::Agent) => {
                let socket = agent::connect(&self.agent).await?;
                splice::unix(socket, carried).await
            }
            Some(Kind::Egress) => {
                // Waits until it listens.
                drop(agent::connect(&self.agent).await?);
                egress::serve(&self.mux, Endpoint::Unix(self.agent.clone()), carried).await
            }
            Some(Kind::Ping) => self.pong(carried).await,
            Some(Kind::Taken) | None => Ok(()),
        }
    }

    /// Sends back what comes: somebody is there.
    async fn pong(&self, mut carried: Carried) -> io::Result<()> {
        loop {
            let byte = carried.read_u8().await?;
            self.patience.renew();
            carried.write_u8(byte).await?;
            carried.flush().await?;
        }
    }
}
