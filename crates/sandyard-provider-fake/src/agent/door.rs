//! The way to an instance's agent: connections in memory, with HTTP on them.

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

/// Bytes on the way, each direction.
const BUFFER_BYTES: usize = 64 << 10;

/// Where an instance's agent is.
struct Door {
    name: String,
    machine: Arc<Machine>,
}

/// The client of an instance's agent.
pub(crate) fn client(machine: Arc<Machine>, name: &str) -> AgentClient {
    let name = format!("fake:{name}");
    AgentClient::patient(Endpoint::Custom(Arc::new(Door { name, machine })))
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Door").field(&self.name).finish()
    }
}

impl Dial for Door {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            self.machine.awake().await?;
            let (inside, outside) = tokio::io::duplex(BUFFER_BYTES);
            tokio::spawn(serve(self.machine.clone(), inside));
            Ok(Box::new(outside) as BoxedStream)
        })
    }
}

/// Answers on one connection until either side ends it or the instance does.
async fn serve(machine: Arc<Machine>, stream: DuplexStream) {
    let answer = service_fn(|request: Request<Incoming>| {
        let machine = machine.clone();
        async move { Ok::<Response, Infallible>(answer(machine, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // Whoever asked gets the error; here there is nobody to tell.
        _ = connection => {}
        () = machine.over() => {}
    }
}

async fn answer(machine: Arc<Machine>, request: Request<Incoming>) -> Response {
    if machine.awake().await.is_err() {
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
