//! Secrets that sandboxes use without seeing them.

use std::collections::BTreeMap;

use sandyard_core::bounds::{MAX_SECRET_BYTES, MAX_SECRET_HOSTS, MAX_SECRET_NAME};
use sandyard_core::network::{BoundHost, SecretText};
use sandyard_core::{Caller, ErrorKind};
use sandyard_store::model::Secret;

use super::create::check_map;
use crate::error::{Result, ServiceError};
use crate::grants::{SecretSet, secret_purpose};
use crate::random;
use crate::request::{SecretInfo, SecretRequest};
use crate::service::Service;

/// Most secrets of one owner.
const MAX_SECRETS: usize = 500;
/// Most secrets of one sandbox.
const MAX_SANDBOX_SECRETS: usize = 64;
/// Bounds of a placeholder: long enough not to be met by chance.
const PLACEHOLDER: std::ops::RangeInclusive<usize> = 8..=200;

impl Service {
    /// Keeps a secret of the caller's, or changes the one of this name. Sandboxes that may use it use the new one at once.
    pub async fn put_secret(&self, caller: &Caller, request: SecretRequest) -> Result<SecretInfo> {
        check(&request)?;
        if request.is_shared && !caller.is_admin() {
            return Err(ServiceError::new(
                ErrorKind::Forbidden,
                "only an admin may share a secret with everybody",
            )
            .field("is_shared"));
        }
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.put_secret_now(&caller, request).await })
            .await
    }

    /// The caller's secrets and the shared ones, by name.
    pub async fn secrets(&self, caller: &Caller) -> Result<Vec<SecretInfo>> {
        let secrets = self.store().secrets_for(&caller.name).await?;
        Ok(secrets.into_iter().map(info).collect())
    }

    /// Forgets a secret of the caller's; for an admin, a shared one of this name too. Sandboxes that could use it cannot any
    /// more.
    pub async fn delete_secret(&self, caller: &Caller, name: &str) -> Result<()> {
        let secrets = self.store().secrets_for(&caller.name).await?;
        let found = SecretSet::new(&secrets).find(&caller.name, name).cloned();
        let secret = found
            .filter(|secret| secret.owner == caller.name || caller.is_admin())
            .ok_or_else(|| no_secret(name))?;
        let service = self.clone();
        self.detached(async move {
            if !service
                .store()
                .delete_secret(&secret.owner, &secret.name)
                .await?
            {
                return Err(no_secret(&secret.name));
            }
            service.spread(&secret, secret.is_shared).await;
            Ok(())
        })
        .await
    }

    /// What stands for each of these secrets, by variable: those of a sandbox's owner, and shared ones.
    pub(super) async fn placeholders(
        &self,
        owner: &str,
        names: &BTreeMap<String, String>,
        env: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        check_map("secrets", names)?;
        if names.len() > MAX_SANDBOX_SECRETS {
            let message = format!("a sandbox has at most {MAX_SANDBOX_SECRETS} secrets");
            return Err(ServiceError::invalid("secrets", message));
        }
        check_env_overlap(names, env)?;
        let secrets = self.store().secrets_for(owner).await?;
        let secrets = SecretSet::new(&secrets);
        let mut by_variable: BTreeMap<&str, &Secret> = BTreeMap::new();
        for (variable, name) in names {
            let secret = secrets.find(owner, name).ok_or_else(|| {
                ServiceError::invalid("secrets", no_secret(name).message)
                    .hint("GET /secrets lists those you may use")
            })?;
            by_variable.insert(variable, secret);
        }
        let mut seen: Vec<&Secret> = Vec::new();
        for &secret in by_variable.values() {
            if let Some(other) = seen.iter().find(|other| {
                other.name != secret.name && overlap(&other.placeholder, &secret.placeholder)
            }) {
                return Err(ServiceError::invalid(
                    "secrets",
                    format!(
                        "the placeholders of `{}` and `{}` cannot be told apart",
                        other.name, secret.name
                    ),
                )
                .hint("give one of them another placeholder"));
            }
            seen.push(secret);
        }
        let placeholder =
            |(variable, secret): (&str, &Secret)| (variable.to_owned(), secret.placeholder.clone());
        Ok(by_variable.into_iter().map(placeholder).collect())
    }

    async fn put_secret_now(&self, caller: &Caller, request: SecretRequest) -> Result<SecretInfo> {
        let owner = &caller.name;
        let secrets = self.store().secrets_for(owner).await?;
        let (same, others): (Vec<&Secret>, Vec<&Secret>) = secrets
            .iter()
            .partition(|secret| secret.owner == *owner && secret.name == request.name);
        let before = same.first().copied();
        let own = others.iter().filter(|secret| secret.owner == *owner);
        if before.is_none() && own.count() >= MAX_SECRETS {
            return Err(ServiceError::new(
                ErrorKind::QuotaExceeded,
                format!("`{owner}` has {MAX_SECRETS} secrets, as many as allowed"),
            )
            .hint("delete one you do not need"));
        }
        let is_taken = |other: &&&Secret| other.is_shared && other.name == request.name;
        if request.is_shared
            && let Some(other) = others.iter().find(is_taken)
        {
            return Err(ServiceError::conflict(format!(
                "`{}` shares a secret of this name already",
                other.owner
            ))
            .field("name"));
        }
        let now_ms = self.clock().now_ms();
        let purpose = secret_purpose(owner, &request.name);
        let secret = Secret {
            owner: owner.clone(),
            sealed: self.sealer().seal(&purpose, request.value.expose())?,
            placeholder: placeholder(&request, before, &others)?,
            name: request.name,
            hosts: request.hosts,
            is_shared: request.is_shared,
            created_ms: now_ms,
            updated_ms: before.map_or(now_ms, |before| now_ms.max(before.updated_ms + 1)),
        };
        let was_shared = before.is_some_and(|before| before.is_shared);
        let secret = self.store().put_secret(&secret).await?;
        self.spread(&secret, secret.is_shared || was_shared).await;
        Ok(info(secret))
    }

    /// Lets a change of a secret take effect where it may be used.
    async fn spread(&self, secret: &Secret, is_shared: bool) {
        let owner = (!is_shared).then_some(secret.owner.as_str());
        if let Err(error) = self.push_grants_of_secret(&secret.name, owner).await {
            tracing::warn!(%error, "A changed secret has not reached all sandboxes yet; the reconciler repeats the push");
        }
    }
}

/// Refuses variables that hold a secret's placeholder and something else as well.
pub(super) fn check_env_overlap(
    secrets: &BTreeMap<String, String>,
    env: &BTreeMap<String, String>,
) -> Result<()> {
    match secrets.keys().find(|variable| env.contains_key(*variable)) {
        None => Ok(()),
        Some(variable) => Err(ServiceError::invalid(
            "secrets",
            format!("`{variable}` is in `env` and in `secrets`: it can be only one of them"),
        )),
    }
}

fn check(request: &SecretRequest) -> Result<()> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let name = &request.name;
    if name.is_empty() || name.len() > MAX_SECRET_NAME || !name.bytes().all(is_fine) {
        return Err(ServiceError::invalid(
            "name",
            format!("the name of a secret is 1 to {MAX_SECRET_NAME} letters, digits, `-` and `_`"),
        ));
    }
    check_value(&request.value)?;
    check_hosts(&request.hosts)?;
    if let Some(placeholder) = &request.placeholder
        && (!PLACEHOLDER.contains(&placeholder.len())
            || !placeholder.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(ServiceError::invalid(
            "placeholder",
            format!(
                "a placeholder is {} to {} visible ASCII characters",
                PLACEHOLDER.start(),
                PLACEHOLDER.end()
            ),
        ));
    }
    Ok(())
}

fn check_value(value: &SecretText) -> Result<()> {
    let text = value.expose();
    if text.is_empty() || text.len() > MAX_SECRET_BYTES || text.chars().any(char::is_control) {
        return Err(ServiceError::invalid(
            "value",
            format!("a secret's value is 1 to {MAX_SECRET_BYTES} bytes without control characters"),
        )
        .hint("a line break at its end counts: leave it out"));
    }
    Ok(())
}

fn check_hosts(hosts: &[BoundHost]) -> Result<()> {
    if hosts.is_empty() || hosts.len() > MAX_SECRET_HOSTS {
        return Err(ServiceError::invalid(
            "hosts",
            format!("a secret is bound to 1 to {MAX_SECRET_HOSTS} hosts"),
        ));
    }
    if hosts.iter().any(|host| host.pattern.is_every_name()) {
        return Err(ServiceError::invalid(
            "hosts",
            "a secret that may go everywhere is none: name the hosts it is for",
        ));
    }
    Ok(())
}

/// The placeholder of a secret: the requested one, the previous one, or one with the secret's name.
fn placeholder(
    request: &SecretRequest,
    before: Option<&Secret>,
    other_secrets: &[&Secret],
) -> Result<String> {
    let clash = |text: &str| {
        let mut other_secrets = other_secrets.iter();
        other_secrets.find(|other| overlap(&other.placeholder, text))
    };
    if let Some(requested) = &request.placeholder {
        return match clash(requested) {
            None => Ok(requested.clone()),
            Some(other) => Err(ServiceError::invalid(
                "placeholder",
                format!(
                    "`{requested}` and the placeholder of `{}` cannot be told apart: one contains the other",
                    other.name
                ),
            )),
        };
    }
    if let Some(before) = before {
        return Ok(before.placeholder.clone());
    }
    let named = format!("sandyard-secret-{}", request.name);
    match clash(&named) {
        None => Ok(named),
        // As with `git` and `github`, where the one's contains the other's.
        Some(_) => Ok(format!("sandyard-placeholder-{}", random::secret()?)),
    }
}

/// Says whether replacing one of two texts could meet the other.
fn overlap(left: &str, right: &str) -> bool {
    left.contains(right) || right.contains(left)
}

fn no_secret(name: &str) -> ServiceError {
    // What the caller sent is shown back, so it is cut: it may be anything.
    let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    ServiceError::new(ErrorKind::NotFound, format!("no secret `{shown}`"))
}

fn info(secret: Secret) -> SecretInfo {
    SecretInfo {
        name: secret.name,
        owner: secret.owner,
        hosts: secret.hosts,
        placeholder: secret.placeholder,
        is_shared: secret.is_shared,
        created_ms: secret.created_ms,
        updated_ms: secret.updated_ms,
    }
}
