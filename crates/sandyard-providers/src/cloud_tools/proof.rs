//! Asks the program on the tool server's port to prove what it is, before a token is sent.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustix::rand::{GetRandomFlags, getrandom};
use sandyard_agent_client::AgentClient;
use serde::Deserialize;

use super::token::Token;
use super::{Problem, TOOL_SERVER_PORT};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an answer.
const MAX_ANSWER: usize = 4096;

/// The result of asking for a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It knows the hash of this sandbox's token.
    Proof,
    /// A tool server of this installation with another token: that of the sandbox that this one is a copy of.
    AnotherProof,
    /// Another program, or none.
    None,
}

#[derive(Deserialize)]
struct ProofResponse {
    proof: String,
}

/// Asks for a proof. An error is one of the connection, and says nothing about the program.
pub(super) async fn request_proof(agent: &AgentClient, token: &Token) -> Result<Answer, Problem> {
    let answer = tokio::time::timeout(TIMEOUT, send_request(agent, token)).await;
    answer.unwrap_or_else(|_| {
        Err(Problem::temporary(
            "the connection to the sandbox does not answer: try again in a moment",
        ))
    })
}

async fn send_request(agent: &AgentClient, token: &Token) -> Result<Answer, Problem> {
    let nonce = nonce()?;
    let port = agent.dial(TOOL_SERVER_PORT).await?;
    let mut request = Request::get(format!("/proof?number={nonce}"))
        .header(http::header::HOST, "localhost")
        .body(Empty::<Bytes>::new())
        .map_err(|error| Problem::temporary(error.to_string()))?;
    request.headers_mut().extend(port.headers);
    let broken = |error: hyper::Error| {
        Problem::temporary(format!("the connection was interrupted: {error}"))
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(port.stream))
        .await
        .map_err(broken)?;
    // The connection ends with the sender.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(broken)?;
    if answer.status() == StatusCode::TOO_MANY_REQUESTS {
        let message = "the cloud accepts no more requests for now: try again in a moment";
        return Err(Problem::temporary(message));
    }
    if answer.status() != StatusCode::OK {
        return Ok(Answer::None);
    }
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
    let response = body
        .ok()
        .and_then(|body| serde_json::from_slice::<ProofResponse>(&body.to_bytes()).ok());
    Ok(match response {
        Some(response) if response.proof == token.proof(&nonce) => Answer::Proof,
        Some(_) => Answer::AnotherProof,
        None => Answer::None,
    })
}

/// A random number that was never used before.
pub(super) fn nonce() -> Result<String, Problem> {
    let mut bytes = [0_u8; 16];
    match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
        Ok(count) if count == bytes.len() => Ok(crate::hex::encode(&bytes)),
        _ => Err(Problem::temporary("no random number is available")),
    }
}
