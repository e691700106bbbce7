//! What a sandbox may reach.

use sandyard_core::network::{NetworkPolicy, Target, TargetHost};
use sandyard_core::{Caller, ErrorKind, SandboxId};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};

use crate::error::{ServiceError, ServiceResult};
use crate::grants::lacks_patch;
use crate::policy;
use crate::service::Service;

impl Service {
    /// What a sandbox may reach: what was asked for, else the default. Values of headers are hidden as `***`.
    pub async fn network(&self, caller: &Caller, name: &str) -> ServiceResult<NetworkPolicy> {
        let sandbox = self.inspect(caller, name).await?;
        self.policy_of(&sandbox)
    }

    /// The same of a row that is known already.
    pub fn policy_of(&self, sandbox: &Sandbox) -> ServiceResult<NetworkPolicy> {
        let mut policy = self.stored_policy(sandbox)?;
        policy::hide(&mut policy);
        Ok(policy)
    }

    /// Replaces what a sandbox may reach, all of it. A header's value that is sent back hidden stays.
    pub async fn set_network(
        &self,
        caller: &Caller,
        name: &str,
        policy: NetworkPolicy,
    ) -> ServiceResult<Sandbox> {
        policy::check(&policy)?;
        self.change_network(caller, name, move |service, row| {
            let mut policy = policy;
            if has_hidden(&policy) {
                let before = service.clear_policy(row)?;
                policy::restore(&mut policy, &before)?;
            }
            policy::seal(service.sealer(), &row.id, &mut policy)?;
            Ok(policy)
        })
        .await
    }

    /// Opens these to a sandbox.
    pub async fn allow_network(
        &self,
        caller: &Caller,
        name: &str,
        targets: Vec<Target>,
    ) -> ServiceResult<Sandbox> {
        check_targets(&targets)?;
        self.change_network(caller, name, move |service, row| {
            let mut policy = service.own_policy(row)?;
            policy.allow(targets);
            policy::check_sealed(&policy)?;
            Ok(policy)
        })
        .await
    }

    /// Closes these to a sandbox.
    pub async fn deny_network(
        &self,
        caller: &Caller,
        name: &str,
        targets: Vec<Target>,
    ) -> ServiceResult<Sandbox> {
        check_targets(&targets)?;
        self.change_network(caller, name, move |service, row| {
            let mut policy = service.own_policy(row)?;
            policy.deny(targets.iter().cloned());
            check_denied(&policy.allow_out, &targets)?;
            policy::check_sealed(&policy)?;
            Ok(policy)
        })
        .await
    }

    /// Gives a sandbox of this node what its row says it may reach, because another node asked. Returns what cannot be
    /// enforced of it.
    pub async fn refresh_network(&self, id: &SandboxId) -> ServiceResult<Vec<String>> {
        let row = self.store().sandbox(id).await?;
        let row = row.ok_or_else(|| ServiceError::no_sandbox(id.as_str()))?;
        if self.places().local_for(&row.location).is_none() {
            return Err(ServiceError::new(
                ErrorKind::Unavailable,
                "this node does not reach that place",
            ));
        }
        let (service, id) = (self.clone(), id.clone());
        self.detached(async move { service.push_grant(&id, true).await })
            .await
    }

    /// Changes a row's policy, and answers when the new one is in force.
    async fn change_network(
        &self,
        caller: &Caller,
        name: &str,
        change: impl FnOnce(&Self, &Sandbox) -> ServiceResult<NetworkPolicy> + Send + 'static,
    ) -> ServiceResult<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let mut claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let policy = change(&service, &claim.row)?;
            let event = claim.event("network_changed", &caller, policy::about(&policy));
            let patch = SandboxPatch {
                network: Some(Some(policy::write(&policy)?)),
                ..SandboxPatch::default()
            };
            claim.note(patch, vec![event], TimerPlan::Keep).await?;
            // Under the claim still: what it lacks belongs to this policy and no later one.
            match service.push_grant(&claim.row.id, true).await {
                Ok(lacks) => {
                    let patch = lacks_patch(&claim.row, &lacks);
                    claim.commit(patch, Vec::new(), TimerPlan::Keep).await
                }
                Err(error) => {
                    claim.release().await?;
                    let message = format!("the policy is kept, but not in force yet: {error}");
                    Err(ServiceError::new(error.kind, message)
                        .hint("it is tried again every half minute; sending it again does no harm")
                        .source(error))
                }
            }
        })
        .await
    }

    /// A row's policy as stored, else the default. Values of headers are sealed in the one and clear in the other.
    fn stored_policy(&self, row: &Sandbox) -> ServiceResult<NetworkPolicy> {
        let stored = policy::read(row.network.as_ref())?;
        Ok(stored.unwrap_or_else(|| self.settings().default_network.clone()))
    }

    /// A policy that may be written into the row: its own, or the default sealed for it.
    fn own_policy(&self, row: &Sandbox) -> ServiceResult<NetworkPolicy> {
        let mut policy = self.stored_policy(row)?;
        if row.network.is_none() {
            policy::seal(self.sealer(), &row.id, &mut policy)?;
        }
        Ok(policy)
    }

    /// A row's policy with everything in clear.
    pub(super) fn clear_policy(&self, row: &Sandbox) -> ServiceResult<NetworkPolicy> {
        let mut policy = self.stored_policy(row)?;
        if row.network.is_some() {
            policy::unseal(self.sealer(), &row.id, &mut policy)?;
        }
        Ok(policy)
    }
}

fn has_hidden(policy: &NetworkPolicy) -> bool {
    let mut values = policy
        .rules
        .values()
        .flatten()
        .flat_map(|rule| rule.transform.headers.values());
    values.any(|value| value == policy::HIDDEN)
}

fn check_targets(targets: &[Target]) -> ServiceResult<()> {
    match targets.is_empty() {
        true => Err(ServiceError::invalid(
            "targets",
            "name at least one host, address or network",
        )),
        false => Ok(()),
    }
}

/// Refuses to deny what an entry that allows more lets through all the same: whoever closes something wants it closed.
fn check_denied(allowed: &[Target], targets: &[Target]) -> ServiceResult<()> {
    for target in targets {
        // Narrower entries are exceptions that somebody made; one port of the very host is none.
        let is_port_of = |entry: &Target| entry.host == target.host && target.port.is_none();
        let stays_open = |entry: &&Target| covers(entry, target) || is_port_of(entry);
        if let Some(entry) = allowed.iter().find(stays_open) {
            return Err(ServiceError::invalid(
                "targets",
                format!("`{target}` would stay open: `{entry}` is allowed, and what is allowed goes first"),
            )
            .hint(format!("deny `{entry}` too, or replace the whole policy")));
        }
    }
    Ok(())
}

/// Says whether an entry stands for all that another one does.
fn covers(entry: &Target, target: &Target) -> bool {
    if entry.port.is_some() && entry.port != target.port {
        return false;
    }
    match (&entry.host, &target.host) {
        _ if entry.host == target.host => true,
        (_, TargetHost::Name(pattern)) => {
            // A wildcard is covered if some name below it is: patterns know nothing finer.
            let name = pattern.as_str().replace('*', "any");
            entry.matches_name(&name, target.port)
        }
        (TargetHost::Network(_, bits), TargetHost::Network(address, target_bits)) => {
            bits <= target_bits && entry.matches_address(*address, target.port.unwrap_or(443))
        }
        (TargetHost::Name(_), TargetHost::Network(address, _)) => {
            entry.matches_address(*address, target.port.unwrap_or(443))
        }
    }
}
