//! What a sandbox may start from. A snapshot only by its own name: whose a name is is known to whoever asks, whose an id, a team
//! or a tag is is not.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};

use super::E2b;
use super::api::NOTHING;
use super::convert::{self, plain_name};
use super::model::{Snapshot, Template};
use super::snapshot_names::PASSING;

/// How long what is there is believed to be all there is. Only ids can be missed by that, which nobody can guess.
const FRESH: Duration = Duration::from_secs(10);
/// How long ids of templates are at E2B.
const ID_LENGTH: usize = 20;

/// One snapshot, and what leads to it.
#[derive(Debug)]
struct Kept {
    /// Its own names, as they are written.
    names: Vec<String>,
    /// Everything that leads to it, bare.
    ways: HashSet<String>,
}

/// What is there.
#[derive(Debug, Default)]
pub(super) struct Sources {
    snapshots: Vec<Kept>,
    /// What leads to templates that are no snapshots, bare.
    templates: HashSet<String>,
}

/// What was there a moment ago.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Option<(Instant, Arc<Sources>)>>);

impl Seen {
    fn get(&self) -> Option<Arc<Sources>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, sources) = seen.as_ref()?;
        (at.elapsed() < FRESH).then(|| Arc::clone(sources))
    }

    fn set(&self, seen: Option<(Instant, Arc<Sources>)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Something has changed.
    pub(super) fn forget(&self) {
        self.set(None);
    }
}

/// A reference without its team and tag, in small letters: E2B makes no difference.
fn bare(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let name = name.split(':').next().unwrap_or(name);
    name.trim().to_lowercase()
}

/// The names of a snapshot, without team and tag; none: it has an id alone.
pub(super) fn names(snapshot: &Snapshot) -> Vec<String> {
    let mut names: Vec<_> = snapshot.names.iter().collect();
    // COMPAT(e2b): the id of one with a name is that name with its team.
    if names.is_empty() && snapshot.snapshot_id.contains('/') {
        names.push(&snapshot.snapshot_id);
    }
    let names = names.into_iter().map(|name| plain_name(name).to_owned());
    names.collect()
}

fn ways(template: &Template) -> impl Iterator<Item = String> {
    let named = template.aliases.iter().chain(&template.names).flatten();
    named.chain([&template.template_id]).map(|text| bare(text))
}

impl Sources {
    pub(super) fn new(snapshots: &[Snapshot], templates: &[Template]) -> Self {
        let kept = snapshots.iter().map(|snapshot| Kept {
            names: names(snapshot),
            ways: snapshot
                .names
                .iter()
                .chain([&snapshot.snapshot_id])
                .map(|text| bare(text))
                .collect(),
        });
        let mut sources = Self {
            snapshots: kept.collect(),
            templates: HashSet::new(),
        };
        for template in templates {
            // What is a snapshot may be among the templates too, with what else leads to it.
            let mut is_snapshot = false;
            for kept in &mut sources.snapshots {
                if ways(template).any(|way| kept.ways.contains(&way)) {
                    kept.ways.extend(ways(template));
                    is_snapshot = true;
                }
            }
            if !is_snapshot {
                sources.templates.extend(ways(template));
            }
        }
        sources
    }

    /// Says whether a reference leads to a snapshot in another way than by its name.
    fn is_detour(&self, reference: &str) -> bool {
        let way = bare(reference);
        let mut found = self
            .snapshots
            .iter()
            .filter(|kept| kept.ways.contains(&way));
        found.any(|kept| !kept.names.iter().any(|name| name == reference))
    }

    /// Says whether a reference is a snapshot's own name.
    fn is_name(&self, reference: &str) -> bool {
        let mut names = self.snapshots.iter().flat_map(|kept| &kept.names);
        names.any(|name| name == reference)
    }

    /// Says whether a template is one of the snapshots.
    pub(super) fn is_snapshot(&self, template: &Template) -> bool {
        ways(template).any(|way| self.snapshots.iter().any(|kept| kept.ways.contains(&way)))
    }

    /// Says whether anything is called so, or nearly so.
    pub(super) fn has(&self, name: &str) -> bool {
        let way = bare(name);
        self.templates.contains(&way) || self.snapshots.iter().any(|kept| kept.ways.contains(&way))
    }
}

impl E2b {
    /// Looks at what is there.
    pub(super) async fn sources(&self) -> Result<Arc<Sources>> {
        let at = Instant::now();
        let (snapshots, templates) = self.lists().await?;
        let sources = Arc::new(Sources::new(&snapshots, &templates));
        self.seen.set(Some((at, Arc::clone(&sources))));
        Ok(sources)
    }

    /// The name there of a snapshot of ours.
    pub(super) fn marked(&self, name: &str) -> String {
        format!("{}{name}", self.mark)
    }

    /// Finds what a sandbox is to start from, by its name there. Refuses what leads to a snapshot in another way than by its name,
    /// and to whoever may not choose all that this installation has not kept.
    pub(super) async fn source(&self, reference: &str, is_restricted: bool) -> Result<String> {
        // That is the operator's own choice.
        if reference == self.info.default_template {
            return Ok(reference.to_owned());
        }
        let own = self.marked(reference);
        let is_plain = bare(reference) == reference;
        let sources = match self.seen.get() {
            // Teams and tags can be guessed, so nothing may be missed; nor may what another server has kept a moment ago.
            Some(seen) if is_plain && (seen.has(&own) || seen.has(reference)) => seen,
            _ => self.sources().await?,
        };
        if sources.is_name(&own) {
            return Ok(own);
        }
        let way = bare(reference);
        let hint = if is_restricted {
            "only an admin may name what this server has not kept, besides the default template"
        } else if way.starts_with(PASSING)
            || way.starts_with(&self.mark)
            || sources.has(&self.marked(&way))
            || sources.is_detour(reference)
            || self.is_hidden(&sources, reference).await?
        {
            "snapshots are named by their own name, without a team or a tag"
        } else {
            return Ok(reference.to_owned());
        };
        let message = format!("E2B has no template `{}`", reference.escape_debug());
        let error = ProviderError::new(ProviderErrorKind::NotFound, message);
        Err(error.hint(Some(hint.to_owned())))
    }

    /// Says whether an id in no list is that of a snapshot.
    async fn is_hidden(&self, sources: &Sources, reference: &str) -> Result<bool> {
        let id = bare(reference);
        if id.len() != ID_LENGTH || !convert::is_id(&id) || sources.has(&id) {
            return Ok(false);
        }
        let path = ["templates", id.as_str()];
        let asked = self.api.ask(Verb::Templates, Method::GET, &path, NOTHING);
        match asked.await {
            Ok(answer) => Ok(sources.is_snapshot(&answer.read()?)),
            // Not this account's, so neither a snapshot of its.
            Err(error) if is_none(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Says whether there is no such thing there, or not for us.
pub(super) fn is_none(error: &ProviderError) -> bool {
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
    fn only_its_own_name_leads_to_a_snapshot() {
        let there = sources(
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
        for fine in [
            "kept",
            "old",
            "python",
            "python:v2",
            "team/python",
            "plain-id",
            "base",
            "base:v1",
        ] {
            assert!(!there.is_detour(fine), "{fine}");
        }
        for odd in [
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
            assert!(there.is_detour(odd), "{odd}");
        }
        assert!(there.is_name("kept") && !there.is_name("python") && !there.is_name("snapshot-7"));
        assert!(there.has("Python") && there.has("kept") && !there.has("new"));
    }

    #[test]
    fn a_name_that_is_another_snapshots_id_leads_nowhere() {
        let there = sources(
            json!([
                {"snapshotID": "snapshot-7:default", "names": ["alice/kept:default"]},
                {"snapshotID": "snapshot-8:default", "names": ["bob/snapshot-7:default"]},
            ]),
            json!([]),
        );
        assert!(there.is_detour("snapshot-7"));
        assert!(!there.is_detour("kept"));
    }
}
