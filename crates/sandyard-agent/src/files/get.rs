//! Reading a file.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_RANGE, HeaderValue, RANGE, VARY,
};
use http::{Method, StatusCode};
use rustix::fs::OFlags;
use sandyard_core::percent;
use sandyard_wire::ConnectError;
use sandyard_wire::query::Query;
use sandyard_wire::range::{self, Part};
use sandyard_wire::routes::{content_type, query};

use super::gzip::{self, Packer};
use super::reply_of;
use crate::activity::OpenStream;
use crate::body::Body;
use crate::call::{Call, Response, plain_error, typed};
use crate::filesystem::from_io;
use crate::fs;
use crate::path;

/// Sends a file or a part of it.
pub(crate) async fn get(call: &mut Call) -> Response {
    match open(call) {
        Ok(file) => send(call, file).unwrap_or_else(reply_of),
        Err(error) => reply_of(error),
    }
}

/// An open regular file.
struct Source {
    file: OwnedFd,
    size: u64,
    name: String,
}

fn open(call: &Call) -> Result<Source, ConnectError> {
    let query = Query::of(&call.parts.uri);
    let user = query.get(query::USERNAME).filter(|name| !name.is_empty());
    let (account, _) = match user {
        Some(name) => call.account_of(Some(name.to_owned()))?,
        None => call.account()?,
    };
    let path = query.get(query::PATH).unwrap_or_default();
    let path = path::resolve(path, &account, &call.agent.settings.borrow())?;
    open_file(&path)
}

fn open_file(path: &Path) -> Result<Source, ConnectError> {
    let failed = |error: io::Error| from_io(path, &error);
    let file = fs::open(path, OFlags::RDONLY).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind.is_dir() {
        return Err(ConnectError::invalid_argument(format!(
            "path '{}' is a directory",
            path.display()
        )));
    }
    if !kind.is_file() {
        return Err(ConnectError::invalid_argument(format!(
            "path '{}' is not a regular file",
            path.display()
        )));
    }
    Ok(Source {
        file,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        name: path::name(path),
    })
}

fn send(call: &Call, source: Source) -> Result<Response, ConnectError> {
    let part = range::parse(call.header(RANGE.as_str()), source.size);
    let range = match part {
        Part::Unsatisfiable => return Ok(unsatisfiable(source.size)),
        Part::Range { first, last } => Some((first, last)),
        Part::Full => None,
    };
    // Files of the kernel, such as in /proc, report a size of zero but have content.
    let is_measured = source.size > 0;
    let packed = range.is_none() && gzip::is_wanted(call.header(ACCEPT_ENCODING.as_str()));
    let disposition = disposition(&source.name);
    let size = source.size;
    let (from, length) = match range {
        Some((first, last)) => (first, Some(last - first + 1)),
        None => (0, is_measured.then_some(size)),
    };
    let mut reader = FileReader {
        file: source.file,
        position: from,
        remaining: length,
        ahead: None,
        _open: call.agent.counters.open_stream(),
        counters: call.agent.counters.clone(),
    };
    let body = if call.parts.method == Method::HEAD {
        Body::empty()
    } else {
        reader
            .read_ahead()
            .map_err(|error| from_io(Path::new(&source.name), &error))?;
        if packed {
            packed_body(reader)
        } else {
            plain_body(reader, length)
        }
    };
    let mut reply = typed(StatusCode::OK, content_type::OCTET_STREAM, body);
    let headers = reply.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.insert(CONTENT_DISPOSITION, disposition);
    if packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    } else if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    if let Some((first, last)) = range {
        if let Ok(value) = HeaderValue::try_from(format!("bytes {first}-{last}/{size}")) {
            headers.insert(CONTENT_RANGE, value);
        }
        *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(reply)
}

fn unsatisfiable(size: u64) -> Response {
    let mut reply = plain_error(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "the range begins after the end of the file",
    );
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
        reply.headers_mut().insert(CONTENT_RANGE, value);
    }
    reply
}

/// The file name a client saves the file under (RFC 6266).
fn disposition(name: &str) -> HeaderValue {
    let value = format!("inline; filename*=utf-8''{}", percent::encode(name));
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("inline"))
}

/// Reads a file piece by piece.
struct FileReader {
    file: OwnedFd,
    position: u64,
    /// Bytes still to be sent; `None`: until the end.
    remaining: Option<u64>,
    /// A piece that was read before the answer began.
    ahead: Option<Bytes>,
    counters: std::rc::Rc<crate::activity::Counters>,
    _open: OpenStream,
}

impl FileReader {
    /// Reads the first piece, so that a file that cannot be read is an error and not a broken answer.
    fn read_ahead(&mut self) -> io::Result<()> {
        self.ahead = Some(self.read()?);
        Ok(())
    }

    /// The next piece; empty at the end.
    fn read(&mut self) -> io::Result<Bytes> {
        if let Some(piece) = self.ahead.take() {
            return Ok(piece);
        }
        let want = self.remaining.map_or(fs::CHUNK_BYTES, |remaining| {
            usize::try_from(remaining).unwrap_or(usize::MAX)
        });
        let want = want.min(fs::CHUNK_BYTES);
        if want == 0 {
            return Ok(Bytes::new());
        }
        let mut buffer = BytesMut::zeroed(want);
        let count = loop {
            match rustix::io::pread(&self.file, &mut buffer[..], self.position) {
                Err(rustix::io::Errno::INTR) => {}
                // A file of the kernel that has no more data at the moment.
                Err(rustix::io::Errno::AGAIN) if self.remaining.is_none() => break 0,
                read => break read?,
            }
        };
        if count == 0 && self.remaining.is_some() {
            // The file was truncated after its length was announced; only an aborted answer tells the client.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.truncate(count);
        self.position += count as u64;
        self.remaining = self.remaining.map(|remaining| remaining - count as u64);
        self.counters.add_bytes(count);
        Ok(buffer.freeze())
    }
}

fn plain_body(reader: FileReader, length: Option<u64>) -> Body {
    let pieces = stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.read() {
            Ok(piece) if piece.is_empty() => None,
            Ok(piece) => Some((Ok(piece), Some(reader))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Body::from_pieces(pieces, length)
}

fn packed_body(reader: FileReader) -> Body {
    let pieces = stream::unfold(Some((reader, Packer::new())), |state| async {
        let (mut reader, mut packer) = state?;
        loop {
            let piece = match reader.read() {
                Ok(piece) => piece,
                Err(error) => return Some((Err(error), None)),
            };
            if piece.is_empty() {
                return Some((packer.finish(), None));
            }
            match packer.push(&piece) {
                Ok(packed) if packed.is_empty() => tokio::task::yield_now().await,
                packed => return Some((packed, Some((reader, packer)))),
            }
        }
    });
    Body::from_pieces(pieces, None)
}
