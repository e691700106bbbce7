//! Writing files: one as the whole body, or several as parts of a form.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use sandyard_wire::ConnectError;
use sandyard_wire::query::Query;
use sandyard_wire::routes::{header, query};
use serde::Serialize;

use super::gzip::Unpacker;
use super::multipart::{Event, Parser};
use super::reply_of;
use super::target::Target;
use crate::call::{Call, Response, json_reply};
use crate::filesystem::from_io;
use crate::path;
use crate::user::Account;

/// Maximum number of files in one form.
const MAX_FILES: usize = 10_000;

/// Maximum length of a metadata value, in bytes.
const MAX_METADATA_BYTES: usize = 4096;

/// One written file in the answer.
#[derive(Debug, Serialize)]
struct WrittenFile {
    path: String,
    name: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

/// Writes the files of a request.
pub(crate) async fn post(call: &mut Call) -> Response {
    let _open = call.agent.counters.open_stream();
    match receive(call).await {
        Ok(files) => json_reply(&files),
        Err(error) => reply_of(error),
    }
}

async fn receive(call: &mut Call) -> Result<Vec<WrittenFile>, ConnectError> {
    let query = Query::of(&call.parts.uri);
    let user = query.get(query::USERNAME).filter(|name| !name.is_empty());
    let (account, _) = match user {
        Some(name) => call.account_of(Some(name.to_owned()))?,
        None => call.account()?,
    };
    let upload = Upload {
        account,
        path: query.get(query::PATH).map(str::to_owned),
        metadata: metadata(call)?,
        files: Vec::new(),
        target: None,
    };
    let kind = call.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let is_form = kind.to_ascii_lowercase().starts_with("multipart/form-data");
    let sink = if is_form {
        let parser = Parser::new(kind);
        Sink::Form(parser.map_err(|error| ConnectError::invalid_argument(error.to_string()))?)
    } else {
        Sink::SingleFile
    };
    upload.run(call, sink).await
}

/// How a body is divided into files.
enum Sink {
    SingleFile,
    Form(Parser),
}

/// An upload in progress.
struct Upload {
    account: Account,
    /// The path of a single file; each of several files names its own.
    path: Option<String>,
    metadata: BTreeMap<String, String>,
    files: Vec<WrittenFile>,
    target: Option<Target>,
}

impl Upload {
    async fn run(
        mut self,
        call: &mut Call,
        mut sink: Sink,
    ) -> Result<Vec<WrittenFile>, ConnectError> {
        if matches!(sink, Sink::SingleFile) {
            let Some(path) = self.path.clone() else {
                return Err(ConnectError::invalid_argument(
                    "the query parameter `path` is missing",
                ));
            };
            self.open(call, &path)?;
        }
        let mut unpacker = unpacker(call)?;
        while let Some(piece) = call.body.next_piece_in_time().await? {
            call.agent.counters.add_bytes(piece.len());
            match &mut unpacker {
                None => self.take(call, &mut sink, &piece)?,
                Some(unpacker) => {
                    let mut failure = None;
                    let unpacked = unpacker.push(&piece, |bytes| {
                        self.take(call, &mut sink, bytes)
                            .map_err(|error| stash(&mut failure, error))
                    });
                    unpack_result(unpacked, failure)?;
                }
            }
            tokio::task::yield_now().await;
        }
        if let Some(unpacker) = unpacker {
            let mut failure = None;
            let unpacked = unpacker.finish(|bytes| {
                self.take(call, &mut sink, bytes)
                    .map_err(|error| stash(&mut failure, error))
            });
            unpack_result(unpacked, failure)?;
        }
        match sink {
            Sink::SingleFile => self.close()?,
            Sink::Form(parser) => parser
                .finish()
                .map_err(|error| ConnectError::invalid_argument(error.to_string()))?,
        }
        Ok(self.files)
    }

    fn take(&mut self, call: &Call, sink: &mut Sink, bytes: &[u8]) -> Result<(), ConnectError> {
        let parser = match sink {
            Sink::SingleFile => return self.write(bytes),
            Sink::Form(parser) => parser,
        };
        let events = parser
            .push(bytes)
            .map_err(|error| ConnectError::invalid_argument(error.to_string()))?;
        for event in events {
            match event {
                // Other fields of a form are not files.
                Event::Begin(part) if part.name == "file" => {
                    let path = self.path.clone().or(part.filename);
                    let path = path.filter(|path| !path.is_empty()).ok_or_else(|| {
                        ConnectError::invalid_argument(
                            "a file of the form has no name: set `filename`",
                        )
                    })?;
                    self.open(call, &path)?;
                }
                Event::Begin(_) => {}
                Event::Data(data) => self.write(&data)?,
                Event::End => self.close()?,
            }
        }
        Ok(())
    }

    fn open(&mut self, call: &Call, path: &str) -> Result<(), ConnectError> {
        if self.files.len() >= MAX_FILES {
            return Err(ConnectError::invalid_argument(format!(
                "more than {MAX_FILES} files in one request"
            )));
        }
        let path: PathBuf = path::resolve(path, &self.account, &call.agent.settings.borrow())?;
        let is_twice = self
            .files
            .iter()
            .any(|file| file.path == path.to_string_lossy());
        if is_twice {
            return Err(ConnectError::invalid_argument(format!(
                "you cannot upload multiple files to the same path '{}', only the first one was written",
                path.display()
            )));
        }
        self.target = Some(Target::open(path, &self.account, &self.metadata)?);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ConnectError> {
        let Some(target) = &mut self.target else {
            return Ok(());
        };
        target
            .write(bytes)
            .map_err(|error| from_io(&target.path, &error))
    }

    fn close(&mut self) -> Result<(), ConnectError> {
        let Some(mut target) = self.target.take() else {
            return Ok(());
        };
        target
            .finish()
            .map_err(|error| from_io(&target.path, &error))?;
        self.files.push(WrittenFile {
            path: target.path.to_string_lossy().into_owned(),
            name: path::name(&target.path),
            r#type: "file",
            metadata: self.metadata.clone(),
        });
        Ok(())
    }
}

fn unpacker(call: &Call) -> Result<Option<Unpacker>, ConnectError> {
    match call.header(CONTENT_ENCODING.as_str()).map(str::trim) {
        None | Some("" | "identity") => Ok(None),
        Some(name) if name.eq_ignore_ascii_case("gzip") => Ok(Some(Unpacker::new())),
        Some(other) => Err(ConnectError::invalid_argument(format!(
            "content encoding '{other}' is not supported"
        ))),
    }
}

/// Carries a protocol error out through an I/O callback.
fn stash(failure: &mut Option<ConnectError>, error: ConnectError) -> io::Error {
    *failure = Some(error);
    io::ErrorKind::Other.into()
}

fn unpack_result(
    unpacked: io::Result<()>,
    failure: Option<ConnectError>,
) -> Result<(), ConnectError> {
    match (unpacked, failure) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) => Err(ConnectError::invalid_argument(format!(
            "the body is not gzip: {error}"
        ))),
    }
}

/// Reads metadata from the headers.
fn metadata(call: &Call) -> Result<BTreeMap<String, String>, ConnectError> {
    let mut metadata = BTreeMap::new();
    for (name, value) in call.headers() {
        let Some(key) = name.as_str().strip_prefix(header::METADATA_PREFIX) else {
            continue;
        };
        let value = std::str::from_utf8(value.as_bytes()).ok();
        let value = value.filter(|value| value.len() <= MAX_METADATA_BYTES);
        match value {
            Some(value) if !key.is_empty() && key.len() <= 200 => {
                metadata.insert(key.to_owned(), value.to_owned());
            }
            _ => {
                return Err(ConnectError::invalid_argument(format!(
                    "metadata '{key}' cannot be stored: a key has 1 to 200 bytes and a value at most {MAX_METADATA_BYTES}"
                )));
            }
        }
    }
    Ok(metadata)
}
