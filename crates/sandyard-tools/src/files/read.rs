//! Reading files: `Read` for models, `read_file` for programs.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::{Bounds, blocking};
use super::kind::Kind;
use super::open::open;
use super::pdf;
use super::show::{Looked, look, pdf_reply, start, up_to};
use crate::call::Call;
use crate::reply::{Answer, MAX_TEXT, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

/// Lines of one answer if nothing else is said.
const DEFAULT_LINES: u64 = 2_000;
/// How long reading may take.
const TIME: Duration = Duration::from_secs(30);
/// Largest file `read_file` gives as a whole.
const MAX_WHOLE: usize = MAX_TEXT - 1024;

const DESCRIPTION: &str = "Reads a file. Text comes as numbered lines (number, tab, line, as `cat -n` prints them), 2,000 \
    lines or 30,000 characters at most; go on with offset. Images (PNG, JPEG, GIF, WebP) come back as images, PDF \
    documents as text. For folders use LS.";

#[derive(Deserialize, JsonSchema)]
struct ReadArguments {
    /// The file: an absolute path, or one relative to the workspace.
    file_path: String,
    /// How many lines (of a PDF: pages) to read at most; 2,000 if left out.
    #[serde(default)]
    limit: Option<u64>,
    /// The number of the first line (of a PDF: page) to read; 1 if left out.
    #[serde(default)]
    offset: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct ShortArguments {
    /// The file: an absolute path, or one relative to the workspace.
    #[serde(alias = "file_path")]
    path: String,
}

/// `Read`.
pub(super) fn read_tool() -> Tool {
    tool::<ReadArguments, _, _>(
        "Read",
        "Read a file",
        Effect::Looks,
        DESCRIPTION,
        |workshop, arguments, call| async move {
            let part = Part {
                first: arguments.offset.unwrap_or(1).max(1),
                limit: arguments.limit.unwrap_or(DEFAULT_LINES).max(1),
            };
            read(&workshop, &arguments.file_path, part, &call).await
        },
    )
}

/// `read_file`.
pub(super) fn short_tool() -> Tool {
    tool::<ShortArguments, _, _>(
        "read_file",
        "Read a text file as it is",
        Effect::Looks,
        "Gives the content of a text file as it is, without line numbers, up to 255 KiB. For parts of larger files, images \
         and PDF documents use Read.",
        |workshop, arguments, _call| async move {
            let path = workshop.workspace.resolve(&arguments.path)?;
            blocking(move || whole(&path)).await.map(Reply::text)
        },
    )
}

/// Which lines or pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Counted from one.
    pub(super) first: u64,
    /// At most so many.
    pub(super) limit: u64,
}

/// Reads a part of whatever the file is.
pub(super) async fn read(workshop: &Workshop, path: &str, part: Part, call: &Call) -> Answer {
    let path = workshop.workspace.resolve(path)?;
    let workspace = workshop.workspace.clone();
    let bounds = Bounds::new(&call.cancelled, TIME);
    let looked = {
        let bounds = bounds.clone();
        blocking(move || look(&workspace, path, part, &bounds)).await?
    };
    match looked {
        Looked::Done(reply) => Ok(reply),
        Looked::Pdf(bytes) => {
            let text = pdf::text(bytes, part, &bounds).await?;
            Ok(pdf_reply(part, text))
        }
    }
}

fn whole(path: &Path) -> Result<String, Problem> {
    let (mut file, metadata) = open(path)?;
    if let Kind::Binary(what) = Kind::of(&start(path, &mut file)?) {
        return Err(Problem::new(format!(
            "{} is not text but {what}",
            path.display()
        )));
    }
    let bytes = up_to(path, file, MAX_WHOLE, || {
        format!(
            "{} has {} bytes, and at most {MAX_WHOLE} are given at once: read parts of it with Read",
            path.display(),
            metadata.len()
        )
    })?;
    String::from_utf8(bytes).map_err(|_| {
        Problem::new(format!(
            "{} is not UTF-8 text: Read shows what can be shown of it",
            path.display()
        ))
    })
}
