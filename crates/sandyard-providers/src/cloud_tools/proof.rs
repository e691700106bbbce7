//! Who is at the door? Asked before any token is shown.

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
use super::{DOOR, Problem};

/// How long an answer may take.
const TIME: Duration = Duration::from_secs(30);
/// Largest answer.
const MAX_ANSWER: usize = 4096;

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It knows our token's hash.
    Proof,
    /// A tool server of ours that goes by another token: that of the sandbox this one is a copy of.
    AnotherProof,
    /// Somebody else, or nobody.
    None,
}

#[derive(Deserialize)]
struct Told {
    proof: String,
}

/// Asks. Failures are those of the way there, and say nothing about who is at its end.
pub(super) async fn ask(agent: &AgentClient, token: &Token) -> Result<Answer, Problem> {
    let asked = tokio::time::timeout(TIME, ask_once(agent, token)).await;
    asked.unwrap_or_else(|_| {
        Err(Problem::passing(
            "the way to the sandbox gives no answer: try again in a moment",
        ))
    })
}

async fn ask_once(agent: &AgentClient, token: &Token) -> Result<Answer, Problem> {
    let number = number()?;
    let stream = agent.dial(DOOR).await?;
    let mut request = Request::get(format!("/proof?number={number}"))
        .header(http::header::HOST, "localhost")
        .body(Empty::<Bytes>::new())
        .map_err(|error| Problem::passing(error.to_string()))?;
    request.headers_mut().extend(stream.headers().clone());
    let odd = |error: hyper::Error| Problem::passing(format!("the way there breaks off: {error}"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(odd)?;
    // It ends with the sender.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(odd)?;
    if answer.status() == StatusCode::TOO_MANY_REQUESTS {
        let message = "the cloud takes no more requests for now: try again in a moment";
        return Err(Problem::passing(message));
    }
    if answer.status() != StatusCode::OK {
        return Ok(Answer::None);
    }
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
    let told = body
        .ok()
        .and_then(|body| serde_json::from_slice::<Told>(&body.to_bytes()).ok());
    Ok(match told {
        Some(told) if told.proof == token.proof(&number) => Answer::Proof,
        Some(_) => Answer::AnotherProof,
        None => Answer::None,
    })
}

/// A number that nobody has had before.
pub(super) fn number() -> Result<String, Problem> {
    let mut bytes = [0_u8; 16];
    match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
        Ok(count) if count == bytes.len() => {
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        _ => Err(Problem::passing("there is no randomness")),
    }
}
