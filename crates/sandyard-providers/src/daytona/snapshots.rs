//! Daytona's snapshots, which are templates here.
//!
//! Snapshots have no labels, so the owner is in the name: snapshots of this installation have a prefix, which users of this server
//! do not see. Only such snapshots are removed.

use http::Method;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, TemplateInfo};

use super::backoff::Backoff;
use super::error::{absent, single_line, unsupported};
use super::model::{NewSnapshot, Snapshot, State};
use super::{Shared, VM_CLASS, convert};

/// Maximum length of a snapshot's name, without the prefix.
const MAX_NAME: usize = 100;

/// The snapshot that a sandbox starts from.
#[derive(Debug)]
pub(super) struct Source {
    /// Its name at Daytona.
    pub(super) name: String,
    /// Whether its sandboxes can be paused with their memory.
    pub(super) is_vm: bool,
}

/// The prefix of an installation.
pub(super) fn name_prefix(installation: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let plain: String = installation.chars().filter(plain).collect();
    format!("sandyard-{plain}-")
}

impl Shared {
    /// A snapshot by its name or id at Daytona, which the API does not distinguish.
    pub(super) async fn snapshot_by_name(&self, name: &str) -> Result<Option<Snapshot>> {
        // These would change the address of the request.
        if matches!(name, "" | "." | "..") {
            return Ok(None);
        }
        let request = self.api.to(Method::GET, &["snapshots", name]);
        match self.api.ask::<Snapshot>("template", request).await {
            Ok(snapshot) => Ok(Some(snapshot).filter(|snapshot| !is_being_removed(snapshot))),
            Err(error) if error.kind == ProviderErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A snapshot of this installation, by its name here.
    async fn find_own_snapshot(&self, name: &str) -> Result<Option<Snapshot>> {
        let full_name = self.full_name(name);
        let snapshot = self.snapshot_by_name(&full_name).await?;
        Ok(snapshot.filter(|snapshot| snapshot.name == full_name))
    }

    /// The name at Daytona of a snapshot of this installation.
    fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.name_prefix)
    }

    /// Finds the snapshot that a sandbox starts from. Snapshots can be addressed by name only, because the owner of a name is
    /// visible, but that of an id is not. Restricted callers get only snapshots of this installation.
    pub(super) async fn source(&self, template: &str, is_restricted: bool) -> Result<Source> {
        // The default is the operator's own choice.
        if template == self.default_template {
            return Ok(Source {
                name: template.to_owned(),
                is_vm: self.is_vm,
            });
        }
        let hint = if is_id(template) || template.starts_with(&self.name_prefix) {
            "address the snapshot by its name"
        } else if let Some(snapshot) = self.find_own_snapshot(template).await? {
            return Ok(source_of(snapshot));
        } else {
            match self.snapshot_by_name(template).await? {
                Some(_) if is_restricted => {
                    "only an admin may use snapshots that this server did not create"
                }
                Some(snapshot) if snapshot.name != template => "address the snapshot by its name",
                Some(snapshot) => return Ok(source_of(snapshot)),
                None => "use the name of an existing snapshot",
            }
        };
        Err(no_snapshot(template).hint(Some(hint.to_owned())))
    }

    /// Saves a sandbox's files as a snapshot, and its memory if there is no other way.
    pub(super) async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let sandbox = self.find_own(id).await?.ok_or_else(absent)?;
        self.check_name(name).await?;
        let full_name = self.full_name(name);
        // A virtual machine is copied while it runs, or when it is stopped; this one must continue to run.
        let is_vm = sandbox.sandbox_class.as_deref() == Some(VM_CLASS);
        let request = self.api.to(Method::POST, &["sandbox", id, "snapshot"]);
        let request = request.json(&NewSnapshot {
            name: &full_name,
            include_memory: (is_vm && sandbox.state == State::Started).then_some(true),
        });
        self.api.send_only("snapshot", request).await?;
        let mut pauses = Backoff::new(self.timeouts.copy);
        loop {
            let sandbox = self.find_own(id).await?.ok_or_else(absent)?;
            let snapshot = self.find_own_snapshot(name).await?;
            let has_finished = sandbox.state != State::Snapshotting;
            match snapshot {
                Some(snapshot) if is_failed(&snapshot) => {
                    let reason = single_line(&snapshot.error_reason.unwrap_or_default());
                    let message = format!("the snapshot failed at Daytona: {reason}");
                    return Err(ProviderError::new(ProviderErrorKind::Failed, message));
                }
                Some(snapshot) if has_finished && snapshot.state.as_deref() == Some("active") => {
                    let template = convert::template(snapshot);
                    return Ok(TemplateInfo {
                        name: name.to_owned(),
                        is_ours: true,
                        ..template
                    });
                }
                _ => pauses.next("snapshot").await?,
            }
        }
    }

    /// Refuses invalid names, and names that are in use.
    async fn check_name(&self, name: &str) -> Result<()> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty()
            || name.len() > MAX_NAME
            || name.starts_with('.')
            || name.starts_with(&self.name_prefix)
            || is_id(name)
            || !name.chars().all(is_allowed)
        {
            let message = format!("`{}` is not a valid snapshot name", single_line(name));
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        for candidate in [self.full_name(name).as_str(), name] {
            if self.snapshot_by_name(candidate).await?.is_some() {
                let message = format!("snapshot `{name}` already exists at Daytona");
                return Err(ProviderError::new(ProviderErrorKind::Conflict, message));
            }
        }
        Ok(())
    }

    /// All templates; those of this installation by their names here.
    pub(super) async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        let all = self.all_snapshots().await?;
        let to_template = |snapshot: Snapshot| {
            let name = snapshot
                .name
                .strip_prefix(&self.name_prefix)
                .map(str::to_owned);
            let is_own = name.is_some();
            let template = convert::template(snapshot);
            let name = name.unwrap_or_else(|| template.name.clone());
            (!is_own, TemplateInfo { name, ..template })
        };
        let mut all: Vec<_> = all
            .into_iter()
            .filter(|snapshot| !is_being_removed(snapshot))
            .map(to_template)
            .collect();
        // If two have the same name, list the one that a create would use.
        all.sort_by(|a, b| (&a.1.name, a.0).cmp(&(&b.1.name, b.0)));
        all.dedup_by(|a, b| a.1.name == b.1.name);
        let mut all: Vec<_> = all.into_iter().map(|(_, template)| template).collect();
        match all
            .iter_mut()
            .find(|snapshot| snapshot.name == self.default_template)
        {
            Some(default) => default.is_ours = true,
            // Daytona's public snapshots may not be listed.
            None => all.push(TemplateInfo {
                name: self.default_template.clone(),
                created_ms: None,
                size_bytes: None,
                note: None,
                is_ours: true,
            }),
        }
        Ok(all)
    }

    /// Removes a snapshot of this installation.
    pub(super) async fn remove_template(&self, name: &str) -> Result<()> {
        if name == self.default_template {
            let message = "the default snapshot cannot be removed";
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        let Some(snapshot) = self.find_own_snapshot(name).await? else {
            return Err(match self.snapshot_by_name(name).await? {
                Some(_) => unsupported(
                    "remove snapshots that this server did not create: remove it at Daytona",
                ),
                None => no_snapshot(name),
            });
        };
        let id = snapshot.id.as_deref().filter(|id| is_id(id));
        let path = ["snapshots", id.unwrap_or(&snapshot.name)];
        match self
            .api
            .send_only("template", self.api.to(Method::DELETE, &path))
            .await
        {
            Err(error) if error.kind != ProviderErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut pauses = Backoff::new(self.timeouts.quick);
        while self.find_own_snapshot(name).await?.is_some() {
            pauses.next("remove_template").await?;
        }
        Ok(())
    }
}

fn source_of(snapshot: Snapshot) -> Source {
    Source {
        is_vm: snapshot.sandbox_class.as_deref() == Some(VM_CLASS),
        name: snapshot.name,
    }
}

fn no_snapshot(name: &str) -> ProviderError {
    let message = format!("there is no snapshot `{}` at Daytona", single_line(name));
    ProviderError::new(ProviderErrorKind::NotFound, message)
}

/// Whether a text has the form of an id.
fn is_id(text: &str) -> bool {
    let parts: Vec<_> = text.trim().split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

fn is_failed(snapshot: &Snapshot) -> bool {
    matches!(snapshot.state.as_deref(), Some("error" | "build_failed"))
}

/// Whether it is being removed.
fn is_being_removed(snapshot: &Snapshot) -> bool {
    snapshot.state.as_deref() == Some("removing")
}
