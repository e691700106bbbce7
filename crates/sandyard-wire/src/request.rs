//! What the head and the body of a request say, for servers of the protocol.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::de::DeserializeOwned;

use crate::routes::{DEFAULT_KEEPALIVE_SECONDS, header};
use crate::{Code, ConnectError, Decoder, Frame, FrameError};

/// Longer time-outs count as no time-out.
const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The number in a header.
pub fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, ConnectError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| ConnectError::invalid_argument(format!("{name} is not a number")))
}

/// The caller's time limit; `None`: without limit.
pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ConnectError> {
    let ms = number(headers, header::CONNECT_TIMEOUT_MS)?;
    let requested = ms.filter(|&ms| ms > 0).map(Duration::from_millis);
    Ok(requested.filter(|timeout| *timeout < MAX_TIMEOUT))
}

/// The silence after which a stream sends a keep-alive.
pub fn keepalive(headers: &HeaderMap) -> Duration {
    let requested = number(headers, header::KEEPALIVE_PING_INTERVAL);
    let requested = requested.ok().flatten().filter(|&seconds| seconds > 0);
    Duration::from_secs(requested.unwrap_or(DEFAULT_KEEPALIVE_SECONDS)).min(MAX_TIMEOUT)
}

/// The user on whose behalf the call acts; `None`: the default user.
pub fn named_user(headers: &HeaderMap) -> Result<Option<String>, ConnectError> {
    let basic = headers.get(AUTHORIZATION).and_then(|value| {
        let encoded = value.to_str().ok()?.strip_prefix("Basic ")?.trim();
        STANDARD.decode(encoded).ok()
    });
    // Other credentials are meant for a proxy and name no user.
    let Some(pair) = basic else { return Ok(None) };
    let pair = String::from_utf8(pair)
        .map_err(|_| ConnectError::new(Code::Unauthenticated, "invalid username"))?;
    let name = pair.split(':').next().unwrap_or_default();
    Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
}

/// Reads a message.
pub fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, ConnectError> {
    serde_json::from_slice(json)
        .map_err(|error| ConnectError::invalid_argument(format!("bad message: {error}")))
}

/// Reads the one message of a call that is answered by a stream.
pub fn stream_message<T: DeserializeOwned>(body: &[u8], max: usize) -> Result<T, ConnectError> {
    let mut decoder = Decoder::new(max);
    decoder.push(body);
    match decoder.next_frame().map_err(bad_frame)? {
        Some(Frame::Message(message)) => parse(&message),
        Some(Frame::End(_)) | None => {
            decoder.finish().map_err(bad_frame)?;
            Err(ConnectError::invalid_argument("the request has no message"))
        }
    }
}

/// The error of a body that is not a sequence of frames.
pub fn bad_frame(error: FrameError) -> ConnectError {
    ConnectError::invalid_argument(error.to_string())
}
