//! Makes another sandbox from the files of one.

use futures_util::{StreamExt, stream};
use sandyard_core::{Caller, SandboxStatus};
use sandyard_provider::InstanceSpec;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use super::create::{Inserted, check_map};
use super::secrets::check_apart;
use super::snapshot::unsupported;
use crate::error::ServiceResult;
use crate::policy;
use crate::random;
use crate::request::ForkRequest;
use crate::service::Service;

/// Forks made at the same time.
const AT_ONCE: usize = 4;

impl Service {
    /// Makes another sandbox from the files of this one, as they are now.
    pub async fn fork(
        &self,
        caller: &Caller,
        name: &str,
        request: ForkRequest,
    ) -> ServiceResult<Sandbox> {
        for (field, words) in [("env", &request.env), ("metadata", &request.metadata)] {
            if let Some(words) = words {
                check_map(field, words)?;
            }
        }
        let original = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.fork_now(&caller, original, request).await })
            .await
    }

    /// Makes several sandboxes from the files of this one, all as they are at one moment. Each succeeds or fails by itself.
    pub async fn fork_many(
        &self,
        caller: &Caller,
        name: &str,
        request: ForkRequest,
        count: usize,
    ) -> ServiceResult<Vec<ServiceResult<Sandbox>>> {
        if count <= 1 {
            return Ok(vec![self.fork(caller, name, request).await]);
        }
        let original = self.existing(caller, name).await?;
        self.check_place(caller, self.places().provider_of(&original).await?)?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            // The files are copied once, under a name that nobody else knows and that is its owner's while it lasts.
            let template = format!("fork-{}", random::id()?);
            let id = original.id.as_str();
            service.make_snapshot(&caller, id, &template, None).await?;
            let one = |_| service.fork_from(&caller, &original, request.clone(), &template);
            let forks = stream::iter(0..count)
                .map(one)
                .buffered(AT_ONCE)
                .collect()
                .await;
            let provider = service.places().provider_of(&original).await?;
            let removed = service.remove_template_of(&caller, &provider, &template);
            if let Err(error) = removed.await {
                tracing::warn!(%error, template, "The files of a fork stay as a snapshot");
            }
            Ok(forks)
        })
        .await
    }

    /// Makes a sandbox like another one, from a template that has its files.
    async fn fork_from(
        &self,
        caller: &Caller,
        original: &Sandbox,
        request: ForkRequest,
        template: &str,
    ) -> ServiceResult<Sandbox> {
        let provider = self.places().provider_of(original).await?;
        let row = self.row_of_fork(original, request)?;
        let spec = InstanceSpec {
            template: template.to_owned(),
            is_restricted: self.is_restricted(caller, &row.provider, template),
            ..self.spec_of(&row)?
        };
        let about = json!({"fork_of": original.id, "provider": row.provider});
        let claim = match self.insert(caller, row, about, None).await? {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let made = provider.create(&spec).await;
        self.finish_create(caller, claim, &provider, made).await
    }

    async fn fork_now(
        &self,
        caller: &Caller,
        original: Sandbox,
        request: ForkRequest,
    ) -> ServiceResult<Sandbox> {
        let source = self.claim(&original.id, Operation::Copy).await?;
        source.check_exists()?;
        let provider = self.places().provider_of(&source.row).await?;
        let provider = self.check_place(caller, provider)?;
        if !provider.info().capabilities.can_fork {
            return Err(unsupported("fork", &source.row.provider));
        }
        let row = self.row_of_fork(&source.row, request)?;
        let spec = InstanceSpec {
            is_restricted: self.is_restricted(caller, &row.provider, &row.template),
            ..self.spec_of(&row)?
        };
        let about = json!({"fork_of": source.row.id, "provider": row.provider});
        let claim = match self.insert(caller, row, about, None).await? {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let id = source.row.provider_id.clone().unwrap_or_default();
        let made = provider.fork(&id, &spec).await;
        let fork = self.finish_create(caller, claim, &provider, made).await?;
        let event = source.event("forked", caller, json!({"into": fork.id}));
        let noted = source
            .commit(SandboxPatch::default(), vec![event], TimerPlan::Keep)
            .await;
        if let Err(error) = noted {
            // The fork is there; only the original's history lacks it.
            tracing::warn!(%error, sandbox.id = %fork.id, "A fork is not in its original's history");
        }
        Ok(fork)
    }

    fn row_of_fork(&self, original: &Sandbox, request: ForkRequest) -> ServiceResult<Sandbox> {
        let now_ms = self.clock().now_ms();
        let id = random::id()?;
        let env = match request.env {
            Some(mut env) => {
                check_apart(&original.secrets, &env)?;
                // What stands for its secrets it has too.
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
                // Sealed for one sandbox, a value does not open for another.
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
