//! A patch as it is to be carried out: all files as they will be, before any is touched.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::Changed;
use super::locate;
use super::parse::Section;
use crate::files::change::{self, Temporary, write_atomically, write_with_mode_of};
use crate::files::open::{check, failed};
use crate::reply::{Problem, Result};

/// Every file a patch touches.
#[derive(Default)]
pub(super) struct Plan {
    files: BTreeMap<PathBuf, File>,
}

/// One file, as it was and as it will be.
struct File {
    was: Was,
    will_be: Option<String>,
    /// What it was moved from.
    like: Option<Metadata>,
}

enum Was {
    Absent,
    /// There, and not read since it only has to go.
    Unread,
    Text(String),
}

impl Plan {
    /// Adds what a section wants, on top of what those before it have made of the files.
    pub(super) fn add(
        &mut self,
        section: &Section,
        resolve: &impl Fn(&str) -> Result<PathBuf>,
    ) -> Result<()> {
        match section {
            Section::Add { path, text } => self.create(path, resolve(path)?, text.clone(), None),
            Section::Delete { path } => self.delete(path, resolve(path)?),
            Section::Update {
                path,
                move_to,
                hunks,
            } => {
                let real = resolve(path)?;
                let text = self.text(path, &real)?;
                let text = locate::change(path, &text, hunks)?;
                let Some(target) = move_to else {
                    if let Some(file) = self.files.get_mut(&real) {
                        file.will_be = Some(text);
                    }
                    return Ok(());
                };
                let real_target = resolve(target)?;
                if real_target == real {
                    return Err(Problem::new(format!(
                        "{path} is moved to where it is: leave \"*** Move to:\" out"
                    )));
                }
                let like = real.symlink_metadata().ok();
                if let Some(file) = self.files.get_mut(&real) {
                    file.will_be = None;
                }
                self.create(target, real_target, text, like)
            }
        }
    }

    fn create(
        &mut self,
        path: &str,
        real: PathBuf,
        text: String,
        like: Option<Metadata>,
    ) -> Result<()> {
        let exists = match self.files.get(&real) {
            Some(file) => file.will_be.is_some(),
            None => real.symlink_metadata().is_ok(),
        };
        if exists {
            return Err(Problem::new(format!(
                "{path} is there already: change it with \"*** Update File:\", or delete it first"
            )));
        }
        let file = self.files.entry(real).or_insert(File {
            was: Was::Absent,
            will_be: None,
            like: None,
        });
        file.will_be = Some(text);
        file.like = like;
        Ok(())
    }

    fn delete(&mut self, path: &str, real: PathBuf) -> Result<()> {
        if let Some(file) = self.files.get_mut(&real) {
            let was = file.will_be.take();
            return was.map(|_| ()).ok_or_else(|| removed_earlier(path));
        }
        let metadata = real
            .symlink_metadata()
            .map_err(|error| failed(&real, "deleted", &error))?;
        check(&real, metadata.file_type())?;
        let file = File {
            was: Was::Unread,
            will_be: None,
            like: None,
        };
        self.files.insert(real, file);
        Ok(())
    }

    /// A file's text as it is at this place of the patch.
    fn text(&mut self, path: &str, real: &Path) -> Result<String> {
        if let Some(file) = self.files.get(real) {
            return file.will_be.clone().ok_or_else(|| removed_earlier(path));
        }
        let text = change::read(real)?.ok_or_else(|| {
            Problem::new(format!(
                "there is no {path} to be updated: make it with \"*** Add File:\""
            ))
        })?;
        let file = File {
            was: Was::Text(text.clone()),
            will_be: Some(text.clone()),
            like: None,
        };
        self.files.insert(real.to_owned(), file);
        Ok(text)
    }

    /// Does all of it; takes back what was done if something fails.
    pub(super) fn apply(self) -> Result<Vec<Changed>> {
        let mut done = Done::default();
        for (path, file) in &self.files {
            if let Err(problem) = done.apply(path, file) {
                done.take_back();
                return Err(Problem::new(format!("nothing was changed: {problem}")));
            }
        }
        for (_, aside) in &done.aside {
            // A file that is left over under a hidden name is no failure of the patch.
            let _ = fs::remove_file(aside);
        }
        let changed = self.files.into_iter().map(|(path, file)| Changed {
            path,
            before: match file.was {
                Was::Text(text) => Some(text),
                Was::Absent | Was::Unread => None,
            },
            after: file.will_be,
        });
        Ok(changed
            .filter(|file| file.before != file.after || file.after.is_none())
            .collect())
    }
}

/// What has been done so far, so that it can be taken back.
#[derive(Default)]
struct Done<'a> {
    created: Vec<&'a Path>,
    rewritten: Vec<(&'a Path, &'a str)>,
    aside: Vec<(&'a Path, PathBuf)>,
}

impl<'a> Done<'a> {
    fn apply(&mut self, path: &'a Path, file: &'a File) -> Result<()> {
        match (&file.was, &file.will_be) {
            (Was::Absent, None) => {}
            (Was::Text(was), Some(text)) if was == text => {}
            (Was::Text(was), Some(text)) => {
                write_atomically(path, text)?;
                self.rewritten.push((path, was));
            }
            (Was::Absent, Some(text)) => {
                write_with_mode_of(path, text, file.like.as_ref())?;
                self.created.push(path);
            }
            // Deleted and made again.
            (Was::Unread, Some(text)) => {
                self.put_aside(path)?;
                write_with_mode_of(path, text, None)?;
                self.created.push(path);
            }
            (Was::Unread | Was::Text(_), None) => self.put_aside(path)?,
        }
        Ok(())
    }

    fn put_aside(&mut self, path: &'a Path) -> Result<()> {
        let aside = Temporary::name(path.parent().unwrap_or(path));
        fs::rename(path, &aside).map_err(|error| failed(path, "deleted", &error))?;
        self.aside.push((path, aside));
        Ok(())
    }

    fn take_back(&self) {
        // As far as it goes: what made the patch fail may stand in the way here too.
        for path in &self.created {
            let _ = fs::remove_file(path);
        }
        for (path, text) in &self.rewritten {
            let _ = write_atomically(path, text);
        }
        for (path, aside) in &self.aside {
            let _ = fs::rename(aside, path);
        }
    }
}

fn removed_earlier(path: &str) -> Problem {
    Problem::new(format!("an earlier part of the patch removes {path}"))
}
