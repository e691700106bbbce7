//! A program started in a container, its input and output as one stream: what links are made of.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use bytes::Bytes;
use futures_util::StreamExt;
use sandyard_agent_client::BoxedStream;
use sandyard_agent_client::wire::host::InitRequest;
use tokio_util::io::StreamReader;

use super::body::AGENT_PATH;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault};
use super::labels::{PRIVATE, SANDBOX};
use super::link::OpenLink;

/// Bytes of output that are read at once.
const OUTPUT: usize = 64 << 10;

/// Opens links to the containers of a daemon.
pub(super) struct Opener(pub(super) Arc<Shared>);

#[async_trait]
impl OpenLink for Opener {
    async fn open(&self, id: &str) -> io::Result<BoxedStream> {
        let work = tokio::time::timeout(self.0.config.timeouts.create, self.0.open_link(id));
        let opened = work
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        opened.map_err(broken)
    }

    async fn init_request(&self, id: &str) -> io::Result<InitRequest> {
        let work = tokio::time::timeout(self.0.config.timeouts.quick, self.0.init_request(id));
        let made = work
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        made.map_err(broken)
    }
}

impl Shared {
    async fn open_link(&self, id: &str) -> DaemonResult<BoxedStream> {
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            cmd: Some(vec![AGENT_PATH.to_owned(), "link".to_owned()]),
            user: Some("0".to_owned()),
            working_dir: Some("/".to_owned()),
            ..ExecConfig::default()
        };
        let exec = self.daemon.create_exec(id, config).await?;
        let options = StartExecOptions {
            detach: false,
            tty: false,
            output_capacity: Some(OUTPUT),
        };
        let started = self.daemon.start_exec(&exec.id, Some(options)).await?;
        let StartExecResults::Attached { output, input } = started else {
            let lost = io::Error::from(io::ErrorKind::NotConnected);
            return Err(Error::from(lost).into());
        };
        let id = id.to_owned();
        let output = output.filter_map(move |piece| {
            let piece = standard_output(&id, piece);
            async move { piece }
        });
        let reader = StreamReader::new(Box::pin(output));
        Ok(Box::new(tokio::io::join(reader, input)))
    }

    /// What the container's agent is to know, out of its own label.
    async fn init_request(&self, id: &str) -> DaemonResult<InitRequest> {
        let labels = self.labels_of(id).await?;
        let label = |key| labels.get(key).map(String::as_str).unwrap_or_default();
        let Some(private) = self.seal.open(label(SANDBOX), label(PRIVATE)) else {
            let message = "what the container was told to remember cannot be read by this server";
            return Err(super::error::known(
                sandyard_provider::ProviderErrorKind::Failed,
                message,
            ));
        };
        Ok(InitRequest {
            env_vars: Some(private.env),
            access_token: Some(private.access_token),
            ..InitRequest::default()
        })
    }
}

/// What the program wrote to its standard output; whatever else it says is for people.
fn standard_output(id: &str, piece: Result<LogOutput, Error>) -> Option<io::Result<Bytes>> {
    match piece {
        Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
        Ok(LogOutput::StdErr { message }) => {
            let text = String::from_utf8_lossy(&message);
            let text = super::error::cut(&text);
            tracing::debug!(container.id = id, "The link says: {text}");
            None
        }
        Ok(_) => None,
        Err(error) => Some(Err(io::Error::other(error))),
    }
}

fn broken(fault: Fault) -> io::Error {
    let kind = match (fault.status(), fault.is_lost()) {
        (Some(404), _) => io::ErrorKind::NotFound,
        (_, true) => io::ErrorKind::ConnectionRefused,
        // It does not run, or is paused.
        (Some(409), _) => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, fault.text())
}
