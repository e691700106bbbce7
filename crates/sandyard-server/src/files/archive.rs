//! The Docker dialect's tar streams: `tar` runs in the sandbox, and its bytes go through us.

use std::io;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, stream};
use sandyard_agent_client::InputTo;
use sandyard_agent_client::wire::event::{EndEvent, Output, ProcessEvent};
use sandyard_core::ErrorKind;
use sandyard_service::{Command, RunRequest, ServiceError, ServiceResult};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};
use utoipa::ToSchema;

use super::content::{broke_off, disposition, read_body};
use super::raw::FileQuery;
use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::stream::Child;

/// How long a copy may take.
const MAX_TIME: std::time::Duration = std::time::Duration::from_secs(6 * 3600);
/// Bytes of an archive passed on at a time.
const PIECE: usize = 128 << 10;
/// Bytes kept of what `tar` complains about.
const MAX_COMPLAINT: usize = 4 << 10;
/// How a shell says that there is no such program.
const NO_PROGRAM: i32 = 127;

/// Unpacks its input below a folder, which is made if need be.
const UNPACK: &str = r#"command -v tar >/dev/null 2>&1 || exit 127
mkdir -p -- "$1" && cd -- "$1" && exec tar -x ${2:+"$2"} -f -"#;

/// Packs a file or a folder under its own name. The first byte is written only once it is known to exist.
const PACK: &str = r#"command -v tar >/dev/null 2>&1 || exit 127
[ -e "$1" ] || [ -L "$1" ] || exit 66
cd -- "$(dirname -- "$1")" && exec tar -c -f - -- "$(basename -- "$1")""#;
/// How the script above says that there is nothing to pack.
const NO_INPUT: i32 = 66;

/// Confirmation that the archive was unpacked.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Copied {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Summary of the result for people.
    message: String,
}

/// Upload a tar archive
///
/// Unpacks the tar archive in the request body below `path`. The archive may be compressed with gzip, bzip2, xz or
/// zstd.
#[utoipa::path(post, path = "/api/sandboxes/{id}/copy-to", operation_id = "copy_to", tag = "docker",
    params(SandboxName, FileQuery),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses(
        (status = 200, description = "Archive unpacked.", body = Copied)))]
pub(super) async fn copy_to(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FileQuery>,
    body: Body,
) -> Result<Json<Copied>, ApiError> {
    let live = query.open(&app, &caller, &name).await?;
    let upload = read_body(&app, body);
    let count = upload.count();
    let mut reader = upload.into_reader();
    let first = read_piece(&mut reader).await.map_err(broke_off)?;
    let request = script(UNPACK, &[&query.path, filter_of(&first)], &query);
    let mut child = Child::start(app.service(), &caller, live, request).await?;
    let mut input = child
        .agent()
        .open_input(child.selector(), InputTo::Stdin)
        .await?;
    let (agent, selector) = (child.agent().clone(), child.selector());
    let passing = async {
        let mut piece = first;
        while !piece.is_empty() {
            input.send(piece).await?;
            piece = read_piece(&mut reader).await.map_err(broke_off)?;
        }
        input.finish().await?;
        agent.close_stdin(selector).await?;
        ServiceResult::Ok(())
    };
    let mut ended = std::pin::pin!(until_end(&mut child));
    // `tar` may stop before the archive does: at its end mark, or because it cannot go on.
    let (end, complaint) = tokio::select! {
        end = &mut ended => end,
        passed = passing => match passed {
            Ok(()) => ended.await,
            Err(error) if matches!(error.kind, ErrorKind::BadRequest | ErrorKind::TooLarge) => {
                return Err(error.into());
            }
            Err(_) => ended.await,
        },
    }?;
    check_end(&end, &complaint, &query.path)?;
    Ok(Json(Copied {
        success: true,
        message: format!("{} bytes unpacked in `{}`", count.get(), query.path),
    }))
}

/// Download a file or directory as a tar archive
///
/// Returns a file, or a directory with everything in it, as a tar archive.
#[utoipa::path(post, path = "/api/sandboxes/{id}/copy-from", operation_id = "copy_from", tag = "docker",
    params(SandboxName, FileQuery),
    responses(
        (status = 200, description = "Archive returned.", content_type = "application/x-tar")))]
pub(super) async fn copy_from(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FileQuery>,
) -> Result<Response, ApiError> {
    let live = query.open(&app, &caller, &name).await?;
    let request = script(PACK, &[&query.path], &query);
    let child = Child::start(app.service(), &caller, live, request).await?;
    let mut packing = Packing {
        child,
        complaint: Vec::new(),
        path: query.path.clone(),
    };
    // A failure before the first byte can still be said properly.
    let first = packing.next().await?.unwrap_or_default();
    let mut response = Response::new(Body::from_stream(packing.into_pieces(first)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-tar"),
    );
    let name = format!("{}.tar", query.path.trim_end_matches('/'));
    headers.insert(header::CONTENT_DISPOSITION, disposition(&name));
    Ok(response)
}

/// An archive on its way out.
struct Packing {
    child: Child,
    complaint: Vec<u8>,
    path: String,
}

impl Packing {
    /// The next piece; none after a good end.
    async fn next(&mut self) -> ServiceResult<Option<Bytes>> {
        loop {
            match self.child.next().await.ok_or_else(vanished)?? {
                ProcessEvent::Data(Output::Stderr(bytes)) => keep(&mut self.complaint, &bytes),
                ProcessEvent::Data(Output::Stdout(bytes) | Output::Pty(bytes)) => {
                    return Ok(Some(bytes));
                }
                ProcessEvent::End(end) => {
                    check_end(&end, &self.complaint, &self.path)?;
                    return Ok(None);
                }
                _ => {}
            }
        }
    }

    /// The rest. A failure on the way cuts the answer off, so that half an archive is not taken for a whole one.
    fn into_pieces(self, first: Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold((Some(first), Some(self)), |(first, packing)| async move {
            if let Some(first) = first {
                return Some((Ok(first), (None, packing)));
            }
            let mut packing = packing?;
            match packing.next().await {
                Ok(Some(piece)) => Some((Ok(piece), (None, Some(packing)))),
                Ok(None) => None,
                Err(error) => Some((Err(io::Error::other(error)), (None, None))),
            }
        })
    }
}

/// A shell script with arguments that nobody interprets.
fn script(script: &str, arguments: &[&str], query: &FileQuery) -> RunRequest {
    let argv = [&["sh", "-c", script, "sh"], arguments].concat();
    let argv = argv.into_iter().map(str::to_owned).collect();
    let mut request = RunRequest::new(Command::Argv(argv));
    request.user = query.user.clone();
    request.timeout = Some(MAX_TIME);
    request.has_stdin = true;
    // An archive is no text.
    request.is_logged = false;
    request
}

/// The next piece of a body; empty at its end.
async fn read_piece(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    let mut piece = bytes::BytesMut::with_capacity(PIECE);
    while piece.len() < PIECE && reader.read_buf(&mut piece).await? > 0 {}
    Ok(piece.freeze())
}

/// The option with which `tar` reads an archive that begins so. It cannot find that out itself from a pipe.
fn filter_of(first: &[u8]) -> &'static str {
    match first {
        [0x1f, 0x8b, ..] => "-z",
        [b'B', b'Z', b'h', ..] => "-j",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "-J",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "--zstd",
        _ => "",
    }
}

/// Waits for the end and keeps the beginning of what is complained about.
async fn until_end(child: &mut Child) -> ServiceResult<(EndEvent, Vec<u8>)> {
    let mut complaint = Vec::new();
    loop {
        match child.next().await.ok_or_else(vanished)?? {
            ProcessEvent::Data(Output::Stderr(bytes)) => keep(&mut complaint, &bytes),
            ProcessEvent::End(end) => return Ok((end, complaint)),
            _ => {}
        }
    }
}

fn keep(complaint: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_COMPLAINT - complaint.len();
    complaint.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

fn vanished() -> ServiceError {
    ServiceError::new(ErrorKind::AgentFailed, "the sandbox broke off")
}

/// What the end of `tar` means.
fn check_end(end: &EndEvent, complaint: &[u8], path: &str) -> ServiceResult<()> {
    let (kind, text) = match end.shell_code() {
        0 => return Ok(()),
        NO_PROGRAM => (
            ErrorKind::Unsupported,
            "the sandbox has no `tar`".to_owned(),
        ),
        NO_INPUT => (
            ErrorKind::FileNotFound,
            format!("no file or folder `{path}`"),
        ),
        code => {
            let complaint: String = String::from_utf8_lossy(complaint)
                .trim()
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            (
                ErrorKind::Invalid,
                format!("`tar` failed with {code}: {complaint}"),
            )
        }
    };
    Err(ServiceError::new(kind, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_told_apart_by_how_they_begin() {
        assert_eq!(filter_of(&[0x1f, 0x8b, 8]), "-z");
        assert_eq!(filter_of(b"BZh9"), "-j");
        assert_eq!(filter_of(b"folder/"), "");
        assert_eq!(filter_of(b""), "");
    }

    #[test]
    fn the_end_of_tar_is_told_in_our_words() {
        let check = |exit_code| {
            let end = EndEvent {
                exit_code,
                exited: true,
                ..EndEvent::default()
            };
            check_end(&end, b"tar: no\x1b[2J\nway\n", "/x")
                .map_err(|error| (error.kind, error.message))
        };
        assert_eq!(check(0), Ok(()));
        assert_eq!(check(127).unwrap_err().0, ErrorKind::Unsupported);
        assert_eq!(check(66).unwrap_err().0, ErrorKind::FileNotFound);
        let expected = "`tar` failed with 2: tar: no [2J way".to_owned();
        assert_eq!(check(2), Err((ErrorKind::Invalid, expected)));
    }
}
