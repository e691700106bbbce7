//! Snapshots and templates.

use http::Method;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, TemplateInfo, Verb};

use super::api::{Api, NOTHING};
use super::convert;
use super::model::{NewSnapshot, Snapshot, Template};
use super::sources::{self, Sources};
use super::{E2b, error};
use crate::date::parse_rfc3339_ms;

impl E2b {
    /// Keeps a sandbox's files.
    pub(super) async fn keep_files(&self, verb: Verb, id: &str, name: &str) -> Result<Snapshot> {
        let wanted = NewSnapshot {
            name,
            memory: false,
        };
        let path = ["sandboxes", id, "snapshots"];
        let made = self.api.ask(verb, Method::POST, &path, Some(&wanted)).await;
        self.seen.forget();
        made?.read()
    }

    /// All snapshots and templates, each list as far as there is one.
    pub(super) async fn lists(&self) -> Result<(Vec<Snapshot>, Vec<Template>)> {
        let verb = Verb::Templates;
        let asked = self.api.pages::<Snapshot>(verb, &["snapshots"], &[]).await;
        let snapshots = match asked {
            // Where there are none at all.
            Err(error) if error.kind == ProviderErrorKind::NotFound => Vec::new(),
            other => other?.0,
        };
        let path = ["templates"];
        let templates = match self.api.ask(verb, Method::GET, &path, NOTHING).await {
            Err(error) if sources::is_none(&error) => Vec::new(),
            other => other?.read()?,
        };
        Ok((snapshots, templates))
    }

    /// Everything a sandbox can start from, what this installation keeps by the names it was given.
    pub(super) async fn all_templates(&self) -> Result<Vec<TemplateInfo>> {
        let (snapshots, templates) = self.lists().await?;
        let sources = Sources::new(&snapshots, &templates);
        let of = |snapshot: &Snapshot| {
            let told = of_snapshot(snapshot)?;
            let own = told.name.strip_prefix(&self.mark).map(str::to_owned);
            let is_foreign = own.is_none();
            let name = own.unwrap_or_else(|| told.name.clone());
            Some((is_foreign, TemplateInfo { name, ..told }))
        };
        let mut all: Vec<_> = snapshots.iter().filter_map(of).collect();
        // What is a snapshot may be in both lists.
        for one in templates.iter().filter(|one| !sources.is_snapshot(one)) {
            let told = of_template(one);
            let is_ours = told.name == self.info.default_template;
            all.push((true, TemplateInfo { is_ours, ..told }));
        }
        // Of two that are called the same, the one is listed that would be taken.
        all.sort_by(|a, b| (&a.1.name, a.0).cmp(&(&b.1.name, b.0)));
        all.dedup_by(|a, b| a.1.name == b.1.name);
        Ok(all.into_iter().map(|(_, told)| told).collect())
    }

    /// Removes a snapshot that this installation keeps.
    pub(super) async fn remove_snapshot(&self, name: &str) -> Result<()> {
        let verb = Verb::RemoveTemplate;
        if name == self.info.default_template {
            let message = "what sandboxes start from by default cannot be removed";
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        let (all, _) = self
            .api
            .pages::<Snapshot>(verb, &["snapshots"], &[])
            .await?;
        let find = |name: &str| {
            let is_called = |one: &&Snapshot| sources::names(one).iter().any(|text| text == name);
            all.iter().find(is_called)
        };
        let Some(found) = find(&self.marked(name)) else {
            if find(name).is_some() {
                let what = "remove what this server has not kept: remove it there";
                return Err(error::unsupported(what));
            }
            let message = format!("E2B has no snapshot `{}`", name.escape_debug());
            return Err(ProviderError::new(ProviderErrorKind::NotFound, message));
        };
        self.seen.forget();
        remove(&self.api, verb, found).await
    }

    /// Sees that nothing there is called so: what has that name would lose it, or be taken for the snapshot.
    pub(super) async fn check_free(&self, name: &str) -> Result<()> {
        convert::check_name(name, &self.mark)?;
        let sources = self.sources().await?;
        if !sources.has(name) && !sources.has(&self.marked(name)) {
            return Ok(());
        }
        let message = format!("E2B has a snapshot or template `{name}` already");
        Err(ProviderError::new(ProviderErrorKind::Conflict, message))
    }
}

/// Removes a snapshot.
pub(super) async fn remove(api: &Api, verb: Verb, snapshot: &Snapshot) -> Result<()> {
    let path = ["templates", snapshot.snapshot_id.as_str()];
    api.ask(verb, Method::DELETE, &path, NOTHING)
        .await
        .map(drop)
}

/// None: it has no name to start from it by. Whose it is only the service knows.
fn of_snapshot(snapshot: &Snapshot) -> Option<TemplateInfo> {
    let name = sources::names(snapshot).into_iter().next()?;
    Some(TemplateInfo {
        is_ours: false,
        name,
        created_ms: None,
        size_bytes: None,
        note: Some("a snapshot".to_owned()),
    })
}

fn of_template(template: &Template) -> TemplateInfo {
    let alias = template.aliases.as_ref().and_then(|all| all.first());
    TemplateInfo {
        is_ours: false,
        name: alias.unwrap_or(&template.template_id).clone(),
        created_ms: template.created_at.as_deref().and_then(parse_rfc3339_ms),
        size_bytes: None,
        note: None,
    }
}

/// What a provider says that has no archives of roots.
pub(super) fn no_import() -> ProviderError {
    error::unsupported("import a template: build it there with E2B's own tools, then name it")
}
