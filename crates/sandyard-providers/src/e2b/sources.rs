//! The templates and snapshots that a sandbox may start from. Snapshots can be addressed by name only, because the owner of a name
//! is visible, but that of an id, team or tag is not.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use parking_lot::Mutex;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};

use super::E2b;
use super::api::NO_BODY;
use super::convert::{self, plain_name};
use super::model::{Snapshot, Template};
use super::snapshot_names::TEMPORARY;

/// How long the lists are cached. Only new ids can be missed, which cannot be guessed.
const CACHE_TTL: Duration = Duration::from_secs(10);
/// Length of template ids at E2B.
const ID_LENGTH: usize = 20;

/// A snapshot and all references to it.
#[derive(Debug)]
struct KnownSnapshot {
    /// Its names as they are written.
    names: Vec<String>,
    /// All references to it, normalized.
    references: HashSet<String>,
}

/// All snapshots and templates.
#[derive(Debug, Default)]
pub(super) struct Sources {
    snapshots: Vec<KnownSnapshot>,
    /// References to templates that are not snapshots, normalized.
    templates: HashSet<String>,
}

/// The cached lists.
#[derive(Debug, Default)]
pub(super) struct SourceCache(Mutex<Option<(Instant, Arc<Sources>)>>);

impl SourceCache {
    fn get(&self) -> Option<Arc<Sources>> {
        let cached = self.0.lock();
        let (at, sources) = cached.as_ref()?;
        (at.elapsed() < CACHE_TTL).then(|| Arc::clone(sources))
    }

    fn set(&self, cached: Option<(Instant, Arc<Sources>)>) {
        *self.0.lock() = cached;
    }

    /// Discards the cached lists after a change.
    pub(super) fn forget(&self) {
        self.set(None);
    }
}

/// A reference without its team and tag, in lower case: E2B ignores these differences.
fn normalized(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let name = name.split(':').next().unwrap_or(name);
    name.trim().to_lowercase()
}

/// The names of a snapshot, without team and tag; empty when it only has an id.
pub(super) fn names(snapshot: &Snapshot) -> Vec<String> {
    let mut names: Vec<_> = snapshot.names.iter().collect();
    // COMPAT(e2b): the id of a snapshot with a name is that name with its team.
    if names.is_empty() && snapshot.snapshot_id.contains('/') {
        names.push(&snapshot.snapshot_id);
    }
    let names = names.into_iter().map(|name| plain_name(name).to_owned());
    names.collect()
}

fn references_of(template: &Template) -> impl Iterator<Item = String> {
    let names = template.aliases.iter().chain(&template.names).flatten();
    names
        .chain([&template.template_id])
        .map(|text| normalized(text))
}

impl Sources {
    pub(super) fn new(snapshots: &[Snapshot], templates: &[Template]) -> Self {
        let addressable = snapshots.iter().map(|snapshot| KnownSnapshot {
            names: names(snapshot),
            references: snapshot
                .names
                .iter()
                .chain([&snapshot.snapshot_id])
                .map(|text| normalized(text))
                .collect(),
        });
        let mut sources = Self {
            snapshots: addressable.collect(),
            templates: HashSet::new(),
        };
        for template in templates {
            // A snapshot may also be in the list of templates, with more references.
            let mut is_snapshot = false;
            for snapshot in &mut sources.snapshots {
                if references_of(template).any(|text| snapshot.references.contains(&text)) {
                    snapshot.references.extend(references_of(template));
                    is_snapshot = true;
                }
            }
            if !is_snapshot {
                sources.templates.extend(references_of(template));
            }
        }
        sources
    }

    /// Whether a reference leads to a snapshot by something other than its name.
    fn is_indirect(&self, reference: &str) -> bool {
        let text = normalized(reference);
        let mut matching = self
            .snapshots
            .iter()
            .filter(|snapshot| snapshot.references.contains(&text));
        matching.any(|snapshot| !snapshot.names.iter().any(|name| name == reference))
    }

    /// Whether a reference is the name of a snapshot.
    fn is_name(&self, reference: &str) -> bool {
        let mut names = self.snapshots.iter().flat_map(|snapshot| &snapshot.names);
        names.any(|name| name == reference)
    }

    /// Whether a template is one of the snapshots.
    pub(super) fn is_snapshot(&self, template: &Template) -> bool {
        references_of(template).any(|text| {
            self.snapshots
                .iter()
                .any(|snapshot| snapshot.references.contains(&text))
        })
    }

    /// Whether a name is in use, ignoring case.
    pub(super) fn has(&self, name: &str) -> bool {
        let text = normalized(name);
        self.templates.contains(&text)
            || self
                .snapshots
                .iter()
                .any(|snapshot| snapshot.references.contains(&text))
    }
}

impl E2b {
    /// Reads all snapshots and templates.
    pub(super) async fn sources(&self) -> Result<Arc<Sources>> {
        let at = Instant::now();
        let (snapshots, templates) = self.lists().await?;
        let sources = Arc::new(Sources::new(&snapshots, &templates));
        self.source_cache.set(Some((at, Arc::clone(&sources))));
        Ok(sources)
    }

    /// The name at E2B of a snapshot of this installation.
    pub(super) fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.snapshot_prefix)
    }

    /// Finds the source of a sandbox by its name at E2B. Refuses indirect references to snapshots, and for restricted callers
    /// everything that this installation did not save.
    pub(super) async fn source(&self, reference: &str, is_restricted: bool) -> Result<String> {
        // The default is the operator's own choice.
        if reference == self.info.default_template {
            return Ok(reference.to_owned());
        }
        let saved = self.full_name(reference);
        let is_normalized = normalized(reference) == reference;
        let sources = match self.source_cache.get() {
            // Teams and tags can be guessed, so the lists must be current; also because another server may have saved a snapshot
            // just now.
            Some(cached) if is_normalized && (cached.has(&saved) || cached.has(reference)) => {
                cached
            }
            _ => self.sources().await?,
        };
        if sources.is_name(&saved) {
            return Ok(saved);
        }
        let bare_name = normalized(reference);
        let hint = if is_restricted {
            "only an admin may use templates that this server did not save, except the default template"
        } else if bare_name.starts_with(TEMPORARY)
            || bare_name.starts_with(&self.snapshot_prefix)
            || sources.has(&self.full_name(&bare_name))
            || sources.is_indirect(reference)
            || self.is_unlisted_snapshot(&sources, reference).await?
        {
            "address the snapshot by its name, without a team or a tag"
        } else {
            return Ok(reference.to_owned());
        };
        let message = format!("E2B has no template `{}`", reference.escape_debug());
        let error = ProviderError::new(ProviderErrorKind::NotFound, message);
        Err(error.hint(Some(hint.to_owned())))
    }

    /// Whether an id that is in no list is that of a snapshot.
    async fn is_unlisted_snapshot(&self, sources: &Sources, reference: &str) -> Result<bool> {
        let id = normalized(reference);
        if id.len() != ID_LENGTH || !convert::is_id(&id) || sources.has(&id) {
            return Ok(false);
        }
        let path = ["templates", id.as_str()];
        let answer = self.api.ask(Verb::Templates, Method::GET, &path, NO_BODY);
        match answer.await {
            Ok(answer) => Ok(sources.is_snapshot(&answer.read()?)),
            // The template of another account is not a snapshot of this one.
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether something does not exist, or is not accessible.
pub(super) fn is_absent(error: &ProviderError) -> bool {
    matches!(
        error.kind,
        ProviderErrorKind::NotFound | ProviderErrorKind::Unsupported | ProviderErrorKind::Invalid
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sources(snapshots: serde_json::Value, templates: serde_json::Value) -> Sources {
        let snapshots: Vec<Snapshot> = serde_json::from_value(snapshots).expect("snapshots");
        let templates: Vec<Template> = serde_json::from_value(templates).expect("templates");
        Sources::new(&snapshots, &templates)
    }

    #[test]
    fn a_snapshot_is_addressed_by_its_name_only() {
        let lists = sources(
            json!([
                {"snapshotID": "team/kept:default", "names": ["team/kept:default"]},
                {"snapshotID": "snapshot-7:default", "names": []},
                {"snapshotID": "team/old:default"},
            ]),
            json!([
                {"templateID": "rki5dems9wqfm4r03t7g", "aliases": ["kept"], "names": ["team/kept"]},
                {"templateID": "plain-id", "aliases": ["python"]},
            ]),
        );
        for direct in [
            "kept",
            "old",
            "python",
            "python:v2",
            "team/python",
            "plain-id",
            "base",
            "base:v1",
        ] {
            assert!(!lists.is_indirect(direct), "{direct}");
        }
        for detour in [
            "kept:default",
            "kept:latest",
            "kept:v2",
            "team/kept",
            "other/kept:default",
            "KEPT",
            " kept",
            "kept ",
            "rki5dems9wqfm4r03t7g",
            "rki5dems9wqfm4r03t7g:default",
            "snapshot-7",
            "snapshot-7:default",
            "old:default",
        ] {
            assert!(lists.is_indirect(detour), "{detour}");
        }
        assert!(lists.is_name("kept") && !lists.is_name("python") && !lists.is_name("snapshot-7"));
        assert!(lists.has("Python") && lists.has("kept") && !lists.has("new"));
    }

    #[test]
    fn a_name_that_is_another_snapshots_id_is_refused() {
        let lists = sources(
            json!([
                {"snapshotID": "snapshot-7:default", "names": ["alice/kept:default"]},
                {"snapshotID": "snapshot-8:default", "names": ["bob/snapshot-7:default"]},
            ]),
            json!([]),
        );
        assert!(lists.is_indirect("snapshot-7"));
        assert!(!lists.is_indirect("kept"));
    }
}
