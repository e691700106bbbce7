//! Snapshots there, which are templates here.
//!
//! Nobody can write on a snapshot there whose it is, so that is in its name: what this installation has made begins with its mark,
//! which nobody here sees. Only such are removed.

use http::Method;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, TemplateInfo};

use super::backoff::Backoff;
use super::error::{absent, tidy, unsupported};
use super::model::{NewSnapshot, Snapshot, State};
use super::{Shared, VM_CLASS, convert};

/// Longest name of a snapshot, without the mark.
const MAX_NAME: usize = 100;

/// What a sandbox starts from.
#[derive(Debug)]
pub(super) struct Source {
    /// Its name there.
    pub(super) name: String,
    /// Whether sandboxes that are made from it can be paused with their memory.
    pub(super) is_machine: bool,
}

/// The mark of an installation.
pub(super) fn mark(installation: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let plain: String = installation.chars().filter(plain).collect();
    format!("sandyard-{plain}-")
}

impl Shared {
    /// A snapshot by its name there, or by its id, since both are one there.
    pub(super) async fn snapshot_by_name(&self, name: &str) -> Result<Option<Snapshot>> {
        // These would be other addresses.
        if matches!(name, "" | "." | "..") {
            return Ok(None);
        }
        let asked = self.api.to(Method::GET, &["snapshots", name]);
        match self.api.ask::<Snapshot>("template", asked).await {
            Ok(snapshot) => Ok(Some(snapshot).filter(|one| !is_going(one))),
            Err(error) if error.kind == ProviderErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One that this installation has made, by the name it was given.
    async fn own_snapshot(&self, name: &str) -> Result<Option<Snapshot>> {
        let there = self.marked(name);
        let found = self.snapshot_by_name(&there).await?;
        Ok(found.filter(|one| one.name == there))
    }

    /// The name there of a snapshot of ours.
    fn marked(&self, name: &str) -> String {
        format!("{}{name}", self.mark)
    }

    /// Finds what a sandbox is to start from. Refuses what leads to a snapshot in another way than by its name: whose a name is is
    /// known to whoever asks, whose an id is is not. Whoever may not choose gets nothing that this installation has not made.
    pub(super) async fn source(&self, template: &str, is_restricted: bool) -> Result<Source> {
        // That is the operator's own choice.
        if template == self.default_template {
            return Ok(Source {
                name: template.to_owned(),
                is_machine: self.is_machine,
            });
        }
        let hint = if is_id(template) || template.starts_with(&self.mark) {
            "snapshots are named by their own name"
        } else if let Some(own) = self.own_snapshot(template).await? {
            return Ok(source_of(own));
        } else {
            match self.snapshot_by_name(template).await? {
                Some(_) if is_restricted => {
                    "only an admin may name snapshots that were not made by this server"
                }
                Some(found) if found.name != template => "snapshots are named by their own name",
                Some(found) => return Ok(source_of(found)),
                None => "name one that is there by its own name",
            }
        };
        Err(no_snapshot(template).hint(Some(hint.to_owned())))
    }

    /// Keeps a sandbox's files under a name, and what runs in it where that is the only way.
    pub(super) async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo> {
        let sandbox = self.own(id).await?.ok_or_else(absent)?;
        self.check_free(name).await?;
        let there = self.marked(name);
        // A machine is copied as it runs, or when it is stopped; this one is to go on.
        let is_machine = sandbox.sandbox_class.as_deref() == Some(VM_CLASS);
        let asked = self.api.to(Method::POST, &["sandbox", id, "snapshot"]);
        let asked = asked.json(&NewSnapshot {
            name: &there,
            include_memory: (is_machine && sandbox.state == State::Started).then_some(true),
        });
        self.api.tell("snapshot", asked).await?;
        let mut pauses = Backoff::new(self.timeouts.copy);
        loop {
            let sandbox = self.own(id).await?.ok_or_else(absent)?;
            let snapshot = self.own_snapshot(name).await?;
            let is_over = sandbox.state != State::Snapshotting;
            match snapshot {
                Some(snapshot) if is_failed(&snapshot) => {
                    let reason = tidy(&snapshot.error_reason.unwrap_or_default());
                    let message = format!("the snapshot failed at Daytona: {reason}");
                    return Err(ProviderError::new(ProviderErrorKind::Failed, message));
                }
                Some(snapshot) if is_over && snapshot.state.as_deref() == Some("active") => {
                    let told = convert::template(snapshot);
                    return Ok(TemplateInfo {
                        name: name.to_owned(),
                        is_ours: true,
                        ..told
                    });
                }
                _ => pauses.next("snapshot").await?,
            }
        }
    }

    /// Refuses what can be no name, and one that something there has already.
    async fn check_free(&self, name: &str) -> Result<()> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty()
            || name.len() > MAX_NAME
            || name.starts_with('.')
            || name.starts_with(&self.mark)
            || is_id(name)
            || !name.chars().all(is_plain)
        {
            let message = format!("`{}` cannot be a snapshot's name", tidy(name));
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        for there in [self.marked(name).as_str(), name] {
            if self.snapshot_by_name(there).await?.is_some() {
                let message = format!("there is a snapshot `{name}` at Daytona already");
                return Err(ProviderError::new(ProviderErrorKind::Conflict, message));
            }
        }
        Ok(())
    }

    /// Everything a sandbox can start from, what this installation has made by the names it was given.
    pub(super) async fn templates(&self) -> Result<Vec<TemplateInfo>> {
        let all = self.all_snapshots().await?;
        let of = |snapshot: Snapshot| {
            let name = snapshot.name.strip_prefix(&self.mark).map(str::to_owned);
            let is_made_here = name.is_some();
            let told = convert::template(snapshot);
            let name = name.unwrap_or_else(|| told.name.clone());
            (!is_made_here, TemplateInfo { name, ..told })
        };
        let mut all: Vec<_> = all
            .into_iter()
            .filter(|one| !is_going(one))
            .map(of)
            .collect();
        // Of two that are called the same, the one is listed that would be taken.
        all.sort_by(|a, b| (&a.1.name, a.0).cmp(&(&b.1.name, b.0)));
        all.dedup_by(|a, b| a.1.name == b.1.name);
        let mut all: Vec<_> = all.into_iter().map(|(_, told)| told).collect();
        match all.iter_mut().find(|one| one.name == self.default_template) {
            Some(default) => default.is_ours = true,
            // What Daytona has for everybody may be in nobody's list.
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

    /// Removes a snapshot that this installation has made.
    pub(super) async fn remove_template(&self, name: &str) -> Result<()> {
        if name == self.default_template {
            let message = "what sandboxes start from by default cannot be removed";
            return Err(ProviderError::new(ProviderErrorKind::Invalid, message));
        }
        let Some(found) = self.own_snapshot(name).await? else {
            return Err(match self.snapshot_by_name(name).await? {
                Some(_) => unsupported("lose snapshots that others made: remove it there"),
                None => no_snapshot(name),
            });
        };
        let id = found.id.as_deref().filter(|id| is_id(id));
        let path = ["snapshots", id.unwrap_or(&found.name)];
        match self
            .api
            .tell("template", self.api.to(Method::DELETE, &path))
            .await
        {
            Err(error) if error.kind != ProviderErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut pauses = Backoff::new(self.timeouts.quick);
        while self.own_snapshot(name).await?.is_some() {
            pauses.next("remove_template").await?;
        }
        Ok(())
    }
}

fn source_of(snapshot: Snapshot) -> Source {
    Source {
        is_machine: snapshot.sandbox_class.as_deref() == Some(VM_CLASS),
        name: snapshot.name,
    }
}

fn no_snapshot(name: &str) -> ProviderError {
    let message = format!("there is no snapshot `{}` at Daytona", tidy(name));
    ProviderError::new(ProviderErrorKind::NotFound, message)
}

/// Says whether a text is written as ids are there.
fn is_id(text: &str) -> bool {
    let parts: Vec<_> = text.trim().split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

fn is_failed(snapshot: &Snapshot) -> bool {
    matches!(snapshot.state.as_deref(), Some("error" | "build_failed"))
}

/// Says whether it is about to be gone.
fn is_going(snapshot: &Snapshot) -> bool {
    snapshot.state.as_deref() == Some("removing")
}
