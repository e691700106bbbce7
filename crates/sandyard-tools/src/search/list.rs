//! What is in a folder: `LS`.

use std::fs::{self, DirEntry};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::files::blocking::{Bounds, blocking};
use crate::files::open::failed;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;
use crate::workspace::Workspace;

/// So many entries are shown.
const MAX_SHOWN: usize = 1_000;
/// So many are looked at, and sorted.
const MAX_SEEN: usize = 100_000;
/// So many of one folder are shown where there are two levels.
const MAX_INNER: usize = 100;
/// How long it may take.
const TIME: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct ListArguments {
    /// The folder: an absolute path, or one relative to the workspace; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
}

/// What is there, for programs.
#[derive(Debug, Serialize, JsonSchema)]
struct ListResult {
    /// The folder.
    path: String,
    /// What is in it, folders first.
    entries: Vec<Entry>,
    /// How many there are.
    total: usize,
    /// There are more than are shown.
    truncated: bool,
    /// How many are, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    /// Its name.
    name: String,
    /// `folder`, `file`, `link`, `pipe or socket` or `other`.
    kind: &'static str,
    /// Of files, in bytes.
    size: Option<u64>,
    /// Where a link leads.
    target: Option<String>,
}

/// The tool.
pub(super) fn list_tool() -> Tool {
    tool::<ListArguments, _, _>(
        "LS",
        "List a folder",
        Effect::Looks,
        "Lists what is in a folder, hidden and ignored files too: folders first (with / at the end), then files with their \
         sizes in bytes and links with where they lead; 1,000 at most.",
        |workshop, arguments, call| async move {
            let workspace = workshop.workspace.clone();
            let bounds = Bounds::new(&call.cancelled, TIME);
            let path = arguments.path.filter(|path| !path.is_empty());
            let path = workspace.resolve(path.as_deref().unwrap_or("."))?;
            blocking(move || list(&workspace, &path, &bounds)).await
        },
    )
    .answers::<ListResult>()
}

fn list(workspace: &Workspace, path: &Path, bounds: &Bounds) -> Answer {
    let (mut entries, mut total) = entries(path, bounds)?;
    let truncated = entries.len() > MAX_SHOWN || total > entries.len();
    total = total.max(entries.len());
    entries.truncate(MAX_SHOWN);
    let name = workspace.shown(path);
    let mut text = format!("{name}:\n");
    for entry in &entries {
        text.push_str(&entry.line());
    }
    if entries.is_empty() {
        text.push_str("[the folder is empty]\n");
    }
    let mut note = String::new();
    if truncated {
        note = format!(
            "[cut: {} of {total} entries are shown; find others with Glob]\n",
            entries.len()
        );
    }
    text.push_str(&note);
    Ok(Reply::text(text).with_structured(ListResult {
        path: name,
        entries,
        total,
        truncated,
        note: super::note(&note),
    }))
}

/// A folder and the folders in it, without hidden ones: what an editor shows.
pub(crate) async fn two_levels(workshop: &Workshop, path: PathBuf, call: &Call) -> Answer {
    let workspace = workshop.workspace.clone();
    let bounds = Bounds::new(&call.cancelled, TIME);
    blocking(move || {
        let mut text = format!("{}:\n", workspace.shown(&path));
        let mut shown = 0;
        for entry in visible(&path, &bounds)?.iter().take(MAX_SHOWN) {
            text.push_str(&entry.line());
            shown += 1;
            if entry.kind != "folder" || shown > MAX_SHOWN {
                continue;
            }
            // Folders of others stay closed.
            let inner = visible(&path.join(&entry.name), &bounds).unwrap_or_default();
            for below in inner.iter().take(MAX_INNER) {
                text.push_str(&format!("  {}", below.line()));
                shown += 1;
            }
            if inner.len() > MAX_INNER {
                text.push_str(&format!("  [and {} more]\n", inner.len() - MAX_INNER));
            }
        }
        if shown >= MAX_SHOWN {
            text.push_str("[cut: not everything is shown; list folders with LS]\n");
        }
        Ok(Reply::text(text))
    })
    .await
}

fn visible(path: &Path, bounds: &Bounds) -> Result<Vec<Entry>, Problem> {
    let (mut entries, _) = entries(path, bounds)?;
    entries.retain(|entry| !entry.name.starts_with('.'));
    Ok(entries)
}

/// What is in a folder, folders first, and how many there are.
fn entries(path: &Path, bounds: &Bounds) -> Result<(Vec<Entry>, usize), Problem> {
    let metadata = path
        .symlink_metadata()
        .map_err(|error| failed(path, "listed", &error))?;
    if !metadata.is_dir() {
        return Err(Problem::new(format!(
            "{} is no folder: read files with Read",
            path.display()
        )));
    }
    let folder = fs::read_dir(path).map_err(|error| failed(path, "listed", &error))?;
    let mut entries = Vec::new();
    let mut total = 0;
    for entry in folder.filter_map(Result::ok) {
        total += 1;
        if entries.len() < MAX_SEEN && !bounds.are_over() {
            entries.push(Entry::of(&entry));
        }
    }
    entries.sort_by(|a, b| (a.kind != "folder", &a.name).cmp(&(b.kind != "folder", &b.name)));
    Ok((entries, total))
}

impl Entry {
    fn of(entry: &DirEntry) -> Self {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut own = Self {
            name,
            kind: "other",
            size: None,
            target: None,
        };
        let Ok(kind) = entry.file_type() else {
            return own;
        };
        if kind.is_dir() {
            own.kind = "folder";
        } else if kind.is_symlink() {
            own.kind = "link";
            let target = fs::read_link(entry.path()).ok();
            own.target = target.map(|target| target.to_string_lossy().into_owned());
        } else if kind.is_file() {
            own.kind = "file";
            own.size = entry.metadata().ok().map(|metadata| metadata.len());
        } else if kind.is_fifo() || kind.is_socket() {
            own.kind = "pipe or socket";
        }
        own
    }

    fn line(&self) -> String {
        let name = super::one_line(&self.name, 255);
        match (self.kind, self.size, &self.target) {
            ("folder", ..) => format!("{name}/\n"),
            (_, Some(size), _) => format!("{name} ({size})\n"),
            (_, _, Some(target)) => format!("{name} -> {}\n", super::one_line(target, 500)),
            (kind, ..) => format!("{name} [{kind}]\n"),
        }
    }
}
