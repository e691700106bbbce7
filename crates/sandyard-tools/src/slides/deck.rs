//! A presentation on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::files::{change, write_atomically};
use crate::reply::{Problem, Result, truncate};
use crate::workspace::Workspace;

/// Folder of all presentations.
const FOLDER: &str = "presentations";
/// File with the list of slides.
const METADATA: &str = "metadata.json";
/// Maximum number of slides.
pub(super) const MAX_SLIDES: u32 = 999;
/// Maximum length of a presentation's name.
const MAX_NAME: usize = 100;
/// Maximum length of a title or description.
const MAX_TEXT: usize = 2000;

/// A presentation.
#[derive(Debug)]
pub(super) struct Deck {
    name: String,
    folder: PathBuf,
}

/// A slide in the list.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct Slide {
    pub(super) number: u32,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) file: String,
    /// Time of the last change, in seconds since 1970.
    #[serde(default)]
    pub(super) updated: u64,
}

#[derive(Default, Deserialize, Serialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    slides: Vec<Slide>,
}

impl Deck {
    /// Opens a presentation by name.
    pub(super) fn open(workspace: &Workspace, name: &str) -> Result<Self> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '.');
        if name.is_empty()
            || name.len() > MAX_NAME
            || !name.chars().all(is_plain)
            || name.starts_with(['.', ' '])
        {
            return Err(Problem::new(format!(
                "invalid presentation_name {name:?}: use up to {MAX_NAME} letters, digits, spaces, _ and -"
            )));
        }
        let folder =
            workspace.resolve(&format!("{}/{FOLDER}/{name}", workspace.root().display()))?;
        Ok(Self {
            name: name.to_owned(),
            folder,
        })
    }

    /// The folder of all presentations.
    pub(super) fn all(workspace: &Workspace) -> PathBuf {
        workspace.root().join(FOLDER)
    }

    /// The file of a slide, which need not exist.
    pub(super) fn file(&self, workspace: &Workspace, number: u32) -> Result<PathBuf> {
        if !(1..=MAX_SLIDES).contains(&number) {
            return Err(Problem::new(format!(
                "slide_number must be 1 to {MAX_SLIDES}"
            )));
        }
        workspace.resolve(&self.folder.join(file_name(number)).display().to_string())
    }

    /// Rebuilds the list from the files. `changed` has the number, title and description of a changed slide.
    pub(super) fn list(
        &self,
        changed: Option<(u32, Option<String>, Option<String>)>,
    ) -> Result<Vec<Slide>> {
        let before = self.previous_slides();
        let mut slides = Vec::new();
        for (number, updated) in self.files()? {
            let old = before.get(&number).cloned();
            let file = file_name(number);
            let mut slide = old.unwrap_or_else(|| Slide {
                number,
                title: title_in(&self.folder.join(&file)),
                description: String::new(),
                file: file.clone(),
                updated,
            });
            if let Some((_, title, description)) =
                changed.as_ref().filter(|slide| slide.0 == number)
            {
                slide.title = title
                    .clone()
                    .map_or(slide.title, |text| truncate(text, MAX_TEXT));
                slide.description = description
                    .clone()
                    .map_or(slide.description, |text| truncate(text, MAX_TEXT));
            }
            slide.file = file;
            slide.updated = updated;
            slides.push(slide);
        }
        let metadata = Metadata {
            name: self.name.clone(),
            slides,
        };
        let text = serde_json::to_string_pretty(&metadata).map_err(Problem::new)?;
        write_atomically(&self.folder.join(METADATA), &text)?;
        Ok(metadata.slides)
    }

    /// The previous list; empty if it cannot be read.
    fn previous_slides(&self) -> BTreeMap<u32, Slide> {
        let text = change::read(&self.folder.join(METADATA))
            .ok()
            .flatten()
            .unwrap_or_default();
        let metadata: Metadata = serde_json::from_str(&text).unwrap_or_default();
        metadata
            .slides
            .into_iter()
            .map(|slide| (slide.number, slide))
            .collect()
    }

    /// The slide files and when they were changed.
    fn files(&self) -> Result<BTreeMap<u32, u64>> {
        let folder = std::fs::read_dir(&self.folder).map_err(|error| {
            Problem::new(format!("{} cannot be read: {error}", self.folder.display()))
        })?;
        let slide = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            let number = name
                .to_str()?
                .strip_prefix("slide_")?
                .strip_suffix(".html")?
                .parse()
                .ok()?;
            let changed = entry
                .metadata()
                .ok()
                .filter(std::fs::Metadata::is_file)?
                .modified()
                .ok()?;
            let seconds = changed
                .duration_since(SystemTime::UNIX_EPOCH)
                .ok()?
                .as_secs();
            (file_name(number) == name.to_str()?).then_some((number, seconds))
        };
        Ok(folder.filter_map(|entry| slide(entry.ok()?)).collect())
    }
}

fn file_name(number: u32) -> String {
    format!("slide_{number:03}.html")
}

/// The title of an HTML file.
fn title_in(file: &Path) -> String {
    let text = change::read(file).ok().flatten().unwrap_or_default();
    let title = text
        .split_once("<title>")
        .and_then(|(_, rest)| Some(rest.split_once("</title>")?.0));
    truncate(title.unwrap_or_default().trim().to_owned(), MAX_TEXT)
}
