//! Creates sandboxes from the files of another one.

use futures_util::{StreamExt, stream};
use sandyard_core::{Caller, SandboxStatus};
use sandyard_provider::InstanceSpec;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use super::create::{Inserted, check_map};
use super::secrets::check_env_overlap;
use super::snapshot::unsupported;
use crate::error::Result;
use crate::policy;
use crate::random;
use crate::request::ForkRequest;
use crate::service::Service;

/// Most forks created at the same time.
const MAX_CONCURRENT: usize = 4;

impl Service {
    /// Creates a sandbox from the current files of another one.
    pub async fn fork(&self, caller: &Caller, name: &str, request: ForkRequest) -> Result<Sandbox> {
        for (field, map) in [("env", &request.env), ("metadata", &request.metadata)] {
            if let Some(map) = map {
                check_map(field, map)?;
            }
        }
        let original = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.fork_now(&caller, original, request).await })
            .await
    }

    /// Creates several sandboxes from the files of another one, all from the same moment. Each of them succeeds or fails on its own.
    pub async fn fork_many(
        &self,
        caller: &Caller,
        name: &str,
        request: ForkRequest,
        count: usize,
    ) -> Result<Vec<Result<Sandbox>>> {
        if count <= 1 {
            return Ok(vec![self.fork(caller, name, request).await]);
        }
        let original = self.existing(caller, name).await?;
        self.check_bound_provider(caller, self.registry().provider_of(&original).await?)?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            // The files are copied once, into a temporary snapshot of the owner with a random name.
            let template = format!("fork-{}", random::id()?);
            let id = original.id.as_str();
            service.make_snapshot(&caller, id, &template, None).await?;
            let fork = |_| service.fork_from(&caller, &original, request.clone(), &template);
            let forks = stream::iter(0..count)
                .map(fork)
                .buffered(MAX_CONCURRENT)
                .collect()
                .await;
            let provider = service.registry().provider_of(&original).await?;
            let removed = service.remove_template_of(&caller, &provider, &template);
            if let Err(error) = removed.await {
                tracing::warn!(%error, template, "Failed to remove the temporary snapshot of a fork");
            }
            Ok(forks)
        })
        .await
    }

    /// Creates a sandbox like another one, from a template with its files.
    async fn fork_from(
        &self,
        caller: &Caller,
        original: &Sandbox,
        request: ForkRequest,
        template: &str,
    ) -> Result<Sandbox> {
        let provider = self.registry().provider_of(original).await?;
        let row = self.row_of_fork(original, request)?;
        let spec = InstanceSpec {
            template: template.to_owned(),
            is_restricted: self.is_restricted(caller, &row.provider, template),
            ..self.spec_of(&row)?
        };
        let data = json!({"fork_of": original.id, "provider": row.provider});
        let claim = match self.insert(caller, row, data, None).await? {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let created = provider.create(&spec).await;
        self.finish_create(caller, claim, &provider, created).await
    }

    async fn fork_now(
        &self,
        caller: &Caller,
        original: Sandbox,
        request: ForkRequest,
    ) -> Result<Sandbox> {
        let source = self.claim(&original.id, Operation::Copy).await?;
        source.check_exists()?;
        let provider = self.registry().provider_of(&source.row).await?;
        let provider = self.check_bound_provider(caller, provider)?;
        if !provider.info().capabilities.can_fork {
            return Err(unsupported("fork", &source.row.provider));
        }
        let row = self.row_of_fork(&source.row, request)?;
        let spec = InstanceSpec {
            is_restricted: self.is_restricted(caller, &row.provider, &row.template),
            ..self.spec_of(&row)?
        };
        let data = json!({"fork_of": source.row.id, "provider": row.provider});
        let claim = match self.insert(caller, row, data, None).await? {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let id = source.row.provider_id.clone().unwrap_or_default();
        let created = provider.fork(&id, &spec).await;
        let fork = self
            .finish_create(caller, claim, &provider, created)
            .await?;
        let event = source.event("forked", caller, json!({"into": fork.id}));
        let committed = source
            .commit(SandboxPatch::default(), vec![event], TimerPlan::Keep)
            .await;
        if let Err(error) = committed {
            // The fork exists; only the event of the original is missing.
            tracing::warn!(%error, sandbox.id = %fork.id, "Failed to add the event of a fork to its original");
        }
        Ok(fork)
    }

    fn row_of_fork(&self, original: &Sandbox, request: ForkRequest) -> Result<Sandbox> {
        let now_ms = self.clock().now_ms();
        let id = random::id()?;
        let env = match request.env {
            Some(mut env) => {
                check_env_overlap(&original.secrets, &env)?;
                // The fork keeps the placeholders of its secrets.
                let is_secret =
                    |(name, _): &(&String, &String)| original.secrets.contains_key(*name);
                let placeholders = original.env.iter().filter(is_secret);
                env.extend(placeholders.map(|(name, value)| (name.clone(), value.clone())));
                env
            }
            None => original.env.clone(),
        };
        let network = match &original.network {
            Some(_) => {
                // A value that is sealed for one sandbox does not open for another.
                let mut policy = self.clear_policy(original)?;
                policy::seal(self.sealer(), &id, &mut policy)?;
                Some(policy::write(&policy)?)
            }
            None => None,
        };
        Ok(Sandbox {
            id,
            alias: None,
            provider_id: None,
            status: SandboxStatus::Creating,
            reason: None,
            env,
            network,
            metadata: request
                .metadata
                .unwrap_or_else(|| original.metadata.clone()),
            timeout_s: match request.timeout {
                Some(timeout) => self.timeout_s(Some(timeout))?,
                None => original.timeout_s,
            },
            public_ports: Vec::new(),
            access_token: random::secret()?,
            created_ms: now_ms,
            started_ms: None,
            stopped_ms: None,
            last_activity_ms: now_ms,
            fixed_end_ms: None,
            version: 1,
            claim: None,
            ..original.clone()
        })
    }
}
