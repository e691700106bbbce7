//! The Docker dialect's tar streams: `tar` runs in the sandbox, and the server forwards its input and output.

use std::io;

use axum::body::Body;
use axum::http::header;
use bytes::Bytes;
use futures_util::{Stream, stream};
use sandyard_agent_client::InputTo;
use sandyard_agent_client::wire::event::{EndEvent, Output, ProcessEvent};
use sandyard_service::{Command, RunRequest};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::content::{broke_off, disposition, read_body};
use super::raw::{FileQuery, OpenFile};
use crate::model::Done;
use crate::prelude::*;
use crate::stream::Child;

/// Time limit of a copy.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(6 * 3600);
/// Bytes of an archive that are forwarded at once.
const CHUNK: usize = 128 << 10;
/// Bytes that are kept of the errors that `tar` prints.
const MAX_ERRORS: usize = 4 << 10;
/// Exit code of a shell that does not find a program.
const NO_PROGRAM: i32 = 127;

/// Unpacks its input below a folder, and creates the folder if it does not exist.
const UNPACK: &str = r#"command -v tar >/dev/null 2>&1 || exit 127
mkdir -p -- "$1" && cd -- "$1" && exec tar -x ${2:+"$2"} -f -"#;

/// Packs a file or a folder under its own name. Nothing is written unless it exists.
const PACK: &str = r#"command -v tar >/dev/null 2>&1 || exit 127
[ -e "$1" ] || [ -L "$1" ] || exit 66
cd -- "$(dirname -- "$1")" && exec tar -c -f - -- "$(basename -- "$1")""#;
/// Exit code of the script above if there is nothing to pack.
const NO_INPUT: i32 = 66;

/// Upload a tar archive
///
/// Unpacks the tar archive in the request body below `path`. The archive may be compressed with gzip, bzip2, xz or
/// zstd.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/copy-to", tag = "docker", params(SandboxName, FileQuery),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, description = "Archive unpacked.", body = Done))
)]
pub(super) async fn copy_to(file: OpenFile, body: Body) -> Reply<Done> {
    let OpenFile {
        call, live, query, ..
    } = file;
    let upload = read_body(&call.app, body);
    let count = upload.count();
    let mut reader = upload.into_reader();
    let first = read_chunk(&mut reader).await.map_err(broke_off)?;
    let request = script(UNPACK, &[&query.path, filter_of(&first)], &query);
    let mut child = Child::start(&call, live, request).await?;
    let mut input = child
        .agent()
        .open_input(child.selector(), InputTo::Stdin)
        .await?;
    let (agent, selector) = (child.agent().clone(), child.selector());
    let forwarding = async {
        let mut chunk = first;
        while !chunk.is_empty() {
            input.send(chunk).await?;
            chunk = read_chunk(&mut reader).await.map_err(broke_off)?;
        }
        input.finish().await?;
        agent.close_stdin(selector).await?;
        ServiceResult::Ok(())
    };
    let mut ended = std::pin::pin!(until_end(&mut child));
    // `tar` may end before the archive does: at the archive's end mark, or because of an error.
    let (end, errors) = tokio::select! {
        end = &mut ended => end,
        forwarded = forwarding => match forwarded {
            Ok(()) => ended.await,
            Err(error) if matches!(error.kind, ErrorKind::BadRequest | ErrorKind::TooLarge) => {
                return Err(error.into());
            }
            Err(_) => ended.await,
        },
    }?;
    check_end(&end, &errors, &query.path)?;
    let unpacked = format!("{} bytes unpacked in `{}`", count.get(), query.path);
    Ok(Json(Done::new(unpacked)))
}

/// Download a file or directory as a tar archive
///
/// Returns a file, or a directory with everything in it, as a tar archive.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/copy-from", tag = "docker", params(SandboxName, FileQuery),
    responses((status = 200, description = "Archive returned.", content_type = "application/x-tar"))
)]
pub(super) async fn copy_from(file: OpenFile) -> ApiResult<Response> {
    let OpenFile {
        call, live, query, ..
    } = file;
    let request = script(PACK, &[&query.path], &query);
    let child = Child::start(&call, live, request).await?;
    let mut packing = Packing {
        child,
        errors: Vec::new(),
        path: query.path.clone(),
    };
    // A failure before the first byte gets a proper response.
    let first = packing.next().await?.unwrap_or_default();
    let name = format!("{}.tar", query.path.trim_end_matches('/'));
    let kind = [(header::CONTENT_TYPE, "application/x-tar")];
    let name = [(header::CONTENT_DISPOSITION, disposition(&name))];
    let body = Body::from_stream(packing.into_chunks(first));
    Ok((kind, name, body).into_response())
}

/// An archive that is being packed.
struct Packing {
    child: Child,
    errors: Vec<u8>,
    path: String,
}

impl Packing {
    /// The next chunk; none after a successful end.
    async fn next(&mut self) -> ServiceResult<Option<Bytes>> {
        loop {
            match self.child.next().await.ok_or_else(connection_lost)?? {
                ProcessEvent::Data(Output::Stderr(bytes)) => append(&mut self.errors, &bytes),
                ProcessEvent::Data(Output::Stdout(bytes) | Output::Pty(bytes)) => {
                    return Ok(Some(bytes));
                }
                ProcessEvent::End(end) => {
                    check_end(&end, &self.errors, &self.path)?;
                    return Ok(None);
                }
                _ => {}
            }
        }
    }

    /// The rest. A failure breaks the response off, so that a client does not take half an archive for a whole one.
    fn into_chunks(self, first: Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold((Some(first), Some(self)), |(first, packing)| async move {
            if let Some(first) = first {
                return Some((Ok(first), (None, packing)));
            }
            let mut packing = packing?;
            match packing.next().await {
                Ok(Some(chunk)) => Some((Ok(chunk), (None, Some(packing)))),
                Ok(None) => None,
                Err(error) => Some((Err(io::Error::other(error)), (None, None))),
            }
        })
    }
}

/// A shell script; its arguments are not interpreted.
fn script(script: &str, arguments: &[&str], query: &FileQuery) -> RunRequest {
    let argv = [&["sh", "-c", script, "sh"], arguments].concat();
    let argv = argv.into_iter().map(str::to_owned).collect();
    let mut request = RunRequest::new(Command::Argv(argv));
    request.user = query.user.clone();
    request.timeout = Some(TIMEOUT);
    request.has_stdin = true;
    // An archive is not text.
    request.is_logged = false;
    request
}

/// The next chunk of a body; empty at its end.
async fn read_chunk(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    let mut chunk = bytes::BytesMut::with_capacity(CHUNK);
    while chunk.len() < CHUNK && reader.read_buf(&mut chunk).await? > 0 {}
    Ok(chunk.freeze())
}

/// The option of `tar` for the compression of an archive. `tar` itself cannot detect it on a pipe.
fn filter_of(first: &[u8]) -> &'static str {
    match first {
        [0x1f, 0x8b, ..] => "-z",
        [b'B', b'Z', b'h', ..] => "-j",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "-J",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "--zstd",
        _ => "",
    }
}

/// Waits for the end of `tar` and keeps the first errors that it prints.
async fn until_end(child: &mut Child) -> ServiceResult<(EndEvent, Vec<u8>)> {
    let mut errors = Vec::new();
    loop {
        match child.next().await.ok_or_else(connection_lost)?? {
            ProcessEvent::Data(Output::Stderr(bytes)) => append(&mut errors, &bytes),
            ProcessEvent::End(end) => return Ok((end, errors)),
            _ => {}
        }
    }
}

fn append(errors: &mut Vec<u8>, bytes: &[u8]) {
    let free = MAX_ERRORS - errors.len();
    errors.extend_from_slice(&bytes[..free.min(bytes.len())]);
}

fn connection_lost() -> ServiceError {
    ServiceError::new(
        ErrorKind::AgentFailed,
        "the connection to the sandbox broke off",
    )
}

/// Translates the exit code of `tar`.
fn check_end(end: &EndEvent, errors: &[u8], path: &str) -> ServiceResult<()> {
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
            let errors: String = String::from_utf8_lossy(errors)
                .trim()
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            (
                ErrorKind::Invalid,
                format!("`tar` failed with {code}: {errors}"),
            )
        }
    };
    Err(ServiceError::new(kind, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_detected_by_the_first_bytes() {
        assert_eq!(filter_of(&[0x1f, 0x8b, 8]), "-z");
        assert_eq!(filter_of(b"BZh9"), "-j");
        assert_eq!(filter_of(b"folder/"), "");
        assert_eq!(filter_of(b""), "");
    }

    #[test]
    fn exit_codes_of_tar_are_translated() {
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
