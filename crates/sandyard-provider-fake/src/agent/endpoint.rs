//! Connects clients to an instance's agent: HTTP over streams in memory.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sandyard_agent_client::{AgentClient, BoxedStream, Dial, Dialling, Endpoint};
use tokio::io::DuplexStream;

use super::call::{Call, Response, plain_error};
use super::machine::Machine;
use super::route;

/// Buffer size of a connection in bytes, each direction.
const BUFFER_BYTES: usize = 64 << 10;

/// Address of an instance's agent.
struct InMemoryEndpoint {
    name: String,
    machine: Arc<Machine>,
}

/// The client of an instance's agent.
pub(crate) fn client(machine: Arc<Machine>, name: &str) -> AgentClient {
    let name = format!("fake:{name}");
    AgentClient::patient(Endpoint::Custom(Arc::new(InMemoryEndpoint {
        name,
        machine,
    })))
}

impl fmt::Debug for InMemoryEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InMemoryEndpoint").field(&self.name).finish()
    }
}

impl Dial for InMemoryEndpoint {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            self.machine.wait_while_paused().await?;
            let (server, client_stream) = tokio::io::duplex(BUFFER_BYTES);
            tokio::spawn(serve(self.machine.clone(), server));
            Ok(Box::new(client_stream) as BoxedStream)
        })
    }
}

/// Serves one connection until a side closes it or the instance ends.
async fn serve(machine: Arc<Machine>, stream: DuplexStream) {
    let answer = service_fn(|request: Request<Incoming>| {
        let machine = machine.clone();
        async move { Ok::<Response, Infallible>(answer(machine, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // The client sees the error of a broken connection; it needs no handling here.
        _ = connection => {}
        () = machine.ended() => {}
    }
}

async fn answer(machine: Arc<Machine>, request: Request<Incoming>) -> Response {
    if machine.wait_while_paused().await.is_err() {
        return plain_error(
            http::StatusCode::SERVICE_UNAVAILABLE,
            "the sandbox is not running",
        );
    }
    let (parts, body) = request.into_parts();
    route::answer(Call {
        machine,
        parts,
        body,
    })
    .await
}
