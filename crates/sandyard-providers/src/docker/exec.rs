//! Runs a program in a container, with its input and output as one stream: the basis of links.

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

/// Size of an output chunk in bytes.
const OUTPUT_BYTES: usize = 64 << 10;

/// Opens links to the containers of a daemon.
pub(super) struct Opener(pub(super) Arc<Shared>);

#[async_trait]
impl OpenLink for Opener {
    async fn open(&self, id: &str) -> io::Result<BoxedStream> {
        let work = tokio::time::timeout(self.0.config.timeouts.create, self.0.open_link(id));
        let stream = work
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        stream.map_err(to_io_error)
    }

    async fn init_request(&self, id: &str) -> io::Result<InitRequest> {
        let work = tokio::time::timeout(self.0.config.timeouts.quick, self.0.init_request(id));
        let request = work
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        request.map_err(to_io_error)
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
            output_capacity: Some(OUTPUT_BYTES),
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

    /// The initial request for a container's agent, from the container's encrypted label.
    async fn init_request(&self, id: &str) -> DaemonResult<InitRequest> {
        let labels = self.labels_of(id).await?;
        let label = |key| labels.get(key).map(String::as_str).unwrap_or_default();
        let Some(private) = self.seal.open(label(SANDBOX), label(PRIVATE)) else {
            let message = "this server cannot decrypt the container's variables and token";
            return Err(super::error::fault(
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

/// The standard output of the program. Its standard error is only logged.
fn standard_output(id: &str, piece: Result<LogOutput, Error>) -> Option<io::Result<Bytes>> {
    match piece {
        Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
        Ok(LogOutput::StdErr { message }) => {
            let text = String::from_utf8_lossy(&message);
            let text = super::error::shorten(&text);
            tracing::debug!(container.id = id, "Message of the link: {text}");
            None
        }
        Ok(_) => None,
        Err(error) => Some(Err(io::Error::other(error))),
    }
}

fn to_io_error(fault: Fault) -> io::Error {
    let kind = match (fault.status(), fault.is_lost()) {
        (Some(404), _) => io::ErrorKind::NotFound,
        (_, true) => io::ErrorKind::ConnectionRefused,
        // The container is stopped or paused.
        (Some(409), _) => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, fault.text())
}
