//! Snapshots and templates.

use http::Method;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, TemplateInfo, Verb};

use super::api::{Api, NO_BODY};
use super::convert;
use super::model::{NewSnapshot, Snapshot, Template};
use super::sources::{self, Sources};
use super::{E2b, error};
use crate::date::parse_rfc3339_ms;

impl E2b {
    /// Saves a sandbox's files as a snapshot.
    pub(super) async fn save_files(&self, verb: Verb, id: &str, name: &str) -> Result<Snapshot> {
        let request = NewSnapshot {
            name,
            memory: false,
        };
        let path = ["sandboxes", id, "snapshots"];
        let answer = self
            .api
            .ask(verb, Method::POST, &path, Some(&request))
            .await;
        self.source_cache.forget();
        answer?.read()
    }

    /// All snapshots and templates that the API lists.
    pub(super) async fn lists(&self) -> Result<(Vec<Snapshot>, Vec<Template>)> {
        let verb = Verb::Templates;
        let answer = self.api.pages::<Snapshot>(verb, &["snapshots"], &[]).await;
        let snapshots = match answer {
            // The API has no snapshots at all.
            Err(error) if error.kind == ProviderErrorKind::NotFound => Vec::new(),
            other => other?.0,
        };
        let path = ["templates"];
        let templates = match self.api.ask(verb, Method::GET, &path, NO_BODY).await {
            Err(error) if sources::is_absent(&error) => Vec::new(),
            other => other?.read()?,
        };
        Ok((snapshots, templates))
    }

    /// All templates; those of this installation by their names here.
    pub(super) async fn all_templates(&self) -> Result<Vec<TemplateInfo>> {
        let (snapshots, templates) = self.lists().await?;
        let sources = Sources::new(&snapshots, &templates);
        let to_entry = |snapshot: &Snapshot| {
            let template = of_snapshot(snapshot)?;
            let own_name = template
                .name
                .strip_prefix(&self.snapshot_prefix)
                .map(str::to_owned);
            let is_foreign = own_name.is_none();
            let name = own_name.unwrap_or_else(|| template.name.clone());
            Some((is_foreign, TemplateInfo { name, ..template }))
        };
        let mut all: Vec<_> = snapshots.iter().filter_map(to_entry).collect();
        // A snapshot may be in both lists.
        for candidate in templates
            .iter()
            .filter(|candidate| !sources.is_snapshot(candidate))
        {
            let template = of_template(candidate);
            let is_ours = template.name == self.info.default_template;
            all.push((
                true,
                TemplateInfo {
                    is_ours,
                    ..template
                },
            ));
        }
        // If two have the same name, list the one that a create would use.
        all.sort_by(|a, b| (&a.1.name, a.0).cmp(&(&b.1.name, b.0)));
        all.dedup_by(|a, b| a.1.name == b.1.name);
        Ok(all.into_iter().map(|(_, template)| template).collect())
    }

    /// Removes a snapshot that this installation saved.
    pub(super) async fn remove_snapshot(&self, name: &str) -> Result<()> {
        let verb = Verb::RemoveTemplate;
        if name == self.info.default_template {
            let message = "the default template cannot be removed";
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        let (all, _) = self
            .api
            .pages::<Snapshot>(verb, &["snapshots"], &[])
            .await?;
        let find_by_name = |name: &str| {
            let has_name =
                |snapshot: &&Snapshot| sources::names(snapshot).iter().any(|text| text == name);
            all.iter().find(has_name)
        };
        let Some(snapshot) = find_by_name(&self.full_name(name)) else {
            if find_by_name(name).is_some() {
                let what = "remove snapshots that this server did not save: remove them at E2B";
                return Err(error::unsupported(what));
            }
            let message = format!("E2B has no snapshot `{}`", name.escape_debug());
            return Err(ProviderError::new(ProviderErrorKind::NotFound, message));
        };
        self.source_cache.forget();
        remove(&self.api, verb, snapshot).await
    }

    /// Refuses a name that is in use at E2B: its owner would lose it, or it would be taken for the snapshot.
    pub(super) async fn check_name(&self, name: &str) -> Result<()> {
        convert::check_name(name, &self.snapshot_prefix)?;
        let sources = self.sources().await?;
        if !sources.has(name) && !sources.has(&self.full_name(name)) {
            return Ok(());
        }
        let message = format!("a snapshot or template `{name}` already exists at E2B");
        Err(ProviderError::new(ProviderErrorKind::Conflict, message))
    }
}

/// Removes a snapshot.
pub(super) async fn remove(api: &Api, verb: Verb, snapshot: &Snapshot) -> Result<()> {
    let path = ["templates", snapshot.snapshot_id.as_str()];
    api.ask(verb, Method::DELETE, &path, NO_BODY)
        .await
        .map(drop)
}

/// `None` for a snapshot without a name. Only the service knows the owner.
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

/// The error of an import.
pub(super) fn no_import() -> ProviderError {
    error::unsupported("import a template: build it with E2B's own tools, then use its name")
}
