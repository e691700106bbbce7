//! The network policy of a sandbox.

use sandyard_core::network::{NetworkPolicy, Target, TargetHost};
use sandyard_core::{Caller, SandboxId};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};

use crate::error::{Result, ServiceError};
use crate::grants::limitations_patch;
use crate::policy;
use crate::service::Service;

impl Service {
    /// The network policy of a sandbox: its own, else the default. Header values are hidden as `***`.
    pub async fn network(&self, caller: &Caller, name: &str) -> Result<NetworkPolicy> {
        let sandbox = self.inspect(caller, name).await?;
        self.policy_of(&sandbox)
    }

    /// The network policy of a row.
    pub fn policy_of(&self, sandbox: &Sandbox) -> Result<NetworkPolicy> {
        let mut policy = self.stored_policy(sandbox)?;
        policy::hide(&mut policy);
        Ok(policy)
    }

    /// Replaces the network policy of a sandbox. A header value that is sent back as `***` stays unchanged.
    pub async fn set_network(
        &self,
        caller: &Caller,
        name: &str,
        policy: NetworkPolicy,
    ) -> Result<Sandbox> {
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

    /// Allows targets for a sandbox.
    pub async fn allow_network(
        &self,
        caller: &Caller,
        name: &str,
        targets: Vec<Target>,
    ) -> Result<Sandbox> {
        check_targets(&targets)?;
        self.change_network(caller, name, move |service, row| {
            let mut policy = service.own_policy(row)?;
            policy.allow(targets);
            policy::check_sealed(&policy)?;
            Ok(policy)
        })
        .await
    }

    /// Denies targets for a sandbox.
    pub async fn deny_network(
        &self,
        caller: &Caller,
        name: &str,
        targets: Vec<Target>,
    ) -> Result<Sandbox> {
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

    /// Pushes the network policy of a local sandbox's row, at the request of another node. Returns what cannot be enforced.
    pub async fn refresh_network(&self, id: &SandboxId) -> Result<Vec<String>> {
        let row = self.store().sandbox(id).await?;
        let row = row.ok_or_else(|| ServiceError::no_sandbox(id.as_str()))?;
        if self.registry().local_for(&row.location).is_none() {
            return Err(ServiceError::unavailable(
                "this node does not reach the sandbox's location",
            ));
        }
        let (service, id) = (self.clone(), id.clone());
        self.detached(async move { service.push_grant(&id, true).await })
            .await
    }

    /// Changes a row's policy, and returns when the new one is in force.
    async fn change_network(
        &self,
        caller: &Caller,
        name: &str,
        change: impl FnOnce(&Self, &Sandbox) -> Result<NetworkPolicy> + Send + 'static,
    ) -> Result<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let mut claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let policy = change(&service, &claim.row)?;
            let event = claim.event("network_changed", &caller, policy::event_data(&policy));
            let patch = SandboxPatch {
                network: Some(Some(policy::write(&policy)?)),
                ..SandboxPatch::default()
            };
            claim.update(patch, vec![event], TimerPlan::Keep).await?;
            // Still under the claim: the limitations belong to this policy, not to a later one.
            match service.push_grant(&claim.row.id, true).await {
                Ok(limitations) => {
                    let patch = limitations_patch(&claim.row, &limitations);
                    claim.commit(patch, Vec::new(), TimerPlan::Keep).await
                }
                Err(error) => {
                    claim.release().await?;
                    let message = format!("the policy is stored, but not in force yet: {error}");
                    Err(ServiceError::new(error.kind, message)
                        .hint("the server tries again every 30 seconds; sending the request again is safe")
                        .source(error))
                }
            }
        })
        .await
    }

    /// A row's stored policy, whose header values are sealed; else the default, whose header values are clear.
    fn stored_policy(&self, row: &Sandbox) -> Result<NetworkPolicy> {
        let stored = policy::read(row.network.as_ref())?;
        Ok(stored.unwrap_or_else(|| self.settings().default_network.clone()))
    }

    /// A policy that can be stored in the row: its own, or the default, sealed for this row.
    fn own_policy(&self, row: &Sandbox) -> Result<NetworkPolicy> {
        let mut policy = self.stored_policy(row)?;
        if row.network.is_none() {
            policy::seal(self.sealer(), &row.id, &mut policy)?;
        }
        Ok(policy)
    }

    /// A row's policy with all header values in clear.
    pub(super) fn clear_policy(&self, row: &Sandbox) -> Result<NetworkPolicy> {
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

fn check_targets(targets: &[Target]) -> Result<()> {
    match targets.is_empty() {
        true => Err(ServiceError::invalid(
            "targets",
            "name at least one host, address or network",
        )),
        false => Ok(()),
    }
}

/// Fails if a denied target stays reachable because another entry allows it.
fn check_denied(allowed: &[Target], targets: &[Target]) -> Result<()> {
    for target in targets {
        // Narrower entries are deliberate exceptions; a port of the same host is not.
        let is_port_of = |entry: &Target| entry.host == target.host && target.port.is_none();
        let stays_open = |entry: &&Target| covers(entry, target) || is_port_of(entry);
        if let Some(entry) = allowed.iter().find(stays_open) {
            return Err(ServiceError::invalid(
                "targets",
                format!(
                    "`{target}` would stay reachable: `{entry}` is allowed, and allowed entries win"
                ),
            )
            .hint(format!(
                "deny `{entry}` as well, or replace the whole policy"
            )));
        }
    }
    Ok(())
}

/// Says whether an entry covers everything that another one does.
fn covers(entry: &Target, target: &Target) -> bool {
    if entry.port.is_some() && entry.port != target.port {
        return false;
    }
    match (&entry.host, &target.host) {
        _ if entry.host == target.host => true,
        (_, TargetHost::Name(pattern)) => {
            // A wildcard is covered if a name below it is: patterns cannot be more specific.
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
