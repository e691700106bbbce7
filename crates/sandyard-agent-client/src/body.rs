//! Bodies of requests and of replies.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body as _, Incoming};

use crate::error::{ClientError, Result};

/// What any request carries.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) fn empty() -> RequestBody {
    Empty::new().map_err(never).boxed_unsync()
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> RequestBody {
    Full::new(bytes.into()).map_err(never).boxed_unsync()
}

fn never(impossible: Infallible) -> io::Error {
    match impossible {}
}

/// Collects a reply's body up to a limit.
pub(crate) async fn collect(
    call: &'static str,
    mut body: Incoming,
    max: usize,
    max_header_len: usize,
) -> Result<Vec<u8>> {
    let too_large = || ClientError::TooLarge {
        call,
        part: "body",
        max,
    };
    // The announced length is not trusted for an allocation, but it suffices for a refusal.
    if body.size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    let mut collected = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ClientError::hyper(call, max_header_len, error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > max - collected.len() {
            return Err(too_large());
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected)
}
