//! Contents of files over plain HTTP.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, HeaderValue, RANGE,
};
use http::{Method, StatusCode};
use sandyard_wire::query::Query;
use sandyard_wire::range::{self, Part};
use sandyard_wire::routes::{content_type, header, query};
use sandyard_wire::{Code, ConnectError};
use serde::Serialize;

use super::account::Account;
use super::call::{Call, Response, full, json_reply, plain_error, typed};
use super::disk::path::{name, parent};
use super::multipart;
use crate::agent::Result;

/// Maximum size of an upload in bytes.
const MAX_UPLOAD_BYTES: usize = 256 << 20;

/// A written file in the response of an upload.
#[derive(Debug, Serialize)]
struct WrittenFile {
    path: String,
    name: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

/// Sends a file or a part of it.
pub(super) fn get(call: &Call) -> Response {
    read(call).unwrap_or_else(reply_of)
}

fn read(call: &Call) -> Result<Response> {
    let query = Query::of(&call.parts.uri);
    let account = account(call, &query)?;
    let path = account.resolve(query.get(query::PATH).unwrap_or_default())?;
    let content = call.machine.disk.read(&path)?;
    let size = content.len();
    let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let (status, part) = match range::parse(call.header(RANGE.as_str()), size as u64) {
        Part::Full => (StatusCode::OK, 0..size),
        Part::Range { first, last } => (StatusCode::PARTIAL_CONTENT, index(first)..index(last) + 1),
        Part::Unsatisfiable => {
            let message = "the range begins behind the end of the file";
            let mut reply = plain_error(StatusCode::RANGE_NOT_SATISFIABLE, message);
            put(&mut reply, CONTENT_RANGE, format!("bytes */{size}"));
            return Ok(reply);
        }
    };
    let (first, length) = (part.start, part.len());
    let body = match call.parts.method {
        Method::HEAD => Bytes::new(),
        _ => content.slice(part),
    };
    let mut reply = typed(status, content_type::OCTET_STREAM, full(body));
    put(&mut reply, ACCEPT_RANGES, "bytes".to_owned());
    put(&mut reply, CONTENT_LENGTH, length.to_string());
    put(&mut reply, CONTENT_DISPOSITION, disposition(name(&path)));
    if status == StatusCode::PARTIAL_CONTENT {
        let last = first + length - 1;
        put(
            &mut reply,
            CONTENT_RANGE,
            format!("bytes {first}-{last}/{size}"),
        );
    }
    Ok(reply)
}

fn put(reply: &mut Response, name: http::HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        reply.headers_mut().insert(name, value);
    }
}

fn disposition(name: &str) -> String {
    let name = sandyard_core::percent::encode(name);
    format!("inline; filename*=utf-8''{name}")
}

/// Writes what a request brings.
pub(super) async fn post(call: &mut Call) -> Response {
    match write(call).await {
        Ok(files_written) => json_reply(&files_written),
        Err(error) => reply_of(error),
    }
}

async fn write(call: &mut Call) -> Result<Vec<WrittenFile>> {
    let query = Query::of(&call.parts.uri);
    let account = account(call, &query)?;
    let metadata = metadata(call)?;
    let encoding = call.header(CONTENT_ENCODING.as_str()).unwrap_or("identity");
    if encoding != "identity" {
        let message = format!("content encoding '{encoding}' is not supported by the fake");
        return Err(ConnectError::invalid_argument(message));
    }
    let kind = call
        .header(CONTENT_TYPE.as_str())
        .unwrap_or_default()
        .to_owned();
    let body = call.collect(MAX_UPLOAD_BYTES).await?;
    let query_path = query.get(query::PATH).map(str::to_owned);
    let files = if kind.to_ascii_lowercase().starts_with("multipart/form-data") {
        let malformed = || ConnectError::invalid_argument("the multipart body is malformed");
        let files = multipart::files(&kind, body).await.ok_or_else(malformed)?;
        let path = |path| query_path.clone().or(path);
        files
            .into_iter()
            .map(|(name, content)| (path(name), content))
            .collect()
    } else {
        vec![(query_path, body)]
    };
    let mut files_written: Vec<WrittenFile> = Vec::new();
    for (path, content) in files {
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| ConnectError::invalid_argument("path is missing"))?;
        let path = account.resolve(&path)?;
        if files_written.iter().any(|before| before.path == path) {
            return Err(ConnectError::invalid_argument(format!(
                "you cannot upload multiple files to the same path '{path}', only the first one was written"
            )));
        }
        let stamp = call.machine.stamp(&account);
        call.machine.disk.make_all(parent(&path), &stamp)?;
        call.machine
            .disk
            .write(&path, content, &stamp, metadata.clone())?;
        files_written.push(WrittenFile {
            name: name(&path).to_owned(),
            path,
            r#type: "file",
            metadata: metadata.clone(),
        });
    }
    Ok(files_written)
}

fn account(call: &Call, query: &Query) -> Result<Account> {
    match query.get(query::USERNAME).filter(|name| !name.is_empty()) {
        Some(name) => call.account_named(Some(name)),
        None => call.account(),
    }
}

/// Reads metadata from the headers.
fn metadata(call: &Call) -> Result<BTreeMap<String, String>> {
    let mut metadata = BTreeMap::new();
    for (name, value) in &call.parts.headers {
        let Some(key) = name.as_str().strip_prefix(header::METADATA_PREFIX) else {
            continue;
        };
        let value = std::str::from_utf8(value.as_bytes()).ok();
        let Some(value) = value.filter(|value| value.len() <= 4096 && !key.is_empty()) else {
            let message = format!("metadata '{key}' cannot be stored");
            return Err(ConnectError::invalid_argument(message));
        };
        metadata.insert(key.to_owned(), value.to_owned());
    }
    Ok(metadata)
}

/// An error as a plain HTTP response.
fn reply_of(error: ConnectError) -> Response {
    let status = match error.code {
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::InvalidArgument | Code::FailedPrecondition => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    plain_error(status, error.message)
}
