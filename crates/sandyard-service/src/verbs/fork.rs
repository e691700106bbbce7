//! Makes another sandbox from the files of one.

use sandyard_core::{Caller, SandboxStatus};
use sandyard_provider::InstanceSpec;
use sandyard_store::model::{
    InsertOutcome, NewSandbox, Operation, Sandbox, SandboxPatch, TimerPlan,
};
use serde_json::json;

use super::create::check_map;
use super::snapshot::unsupported;
use crate::claim::{CLAIM_FOR, Claim, millis};
use crate::error::{ServiceError, ServiceResult};
use crate::random;
use crate::request::ForkRequest;
use crate::service::Service;

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

    async fn fork_now(
        &self,
        caller: &Caller,
        original: Sandbox,
        request: ForkRequest,
    ) -> ServiceResult<Sandbox> {
        let source = self.claim(&original.id, Operation::Copy).await?;
        source.check_exists()?;
        let provider = self.places().provider(&source.row.location).await?;
        if !provider.info().capabilities.can_fork {
            return Err(unsupported("fork", &source.row.provider));
        }
        let claim = self.insert_fork(caller, &source.row, request).await?;
        let spec = InstanceSpec {
            sandbox_id: claim.row.id.clone(),
            template: claim.row.template.clone(),
            limits: claim.row.limits.clone(),
            env: claim.row.env.clone(),
            access_token: claim.row.access_token.clone(),
            hostname: None,
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

    async fn insert_fork(
        &self,
        caller: &Caller,
        original: &Sandbox,
        request: ForkRequest,
    ) -> ServiceResult<Claim> {
        let now_ms = self.clock().now_ms();
        let row = Sandbox {
            id: random::id()?,
            alias: None,
            provider_id: None,
            status: SandboxStatus::Creating,
            reason: None,
            env: request.env.unwrap_or_else(|| original.env.clone()),
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
        };
        self.check_room().await?;
        let quota = self.quota(caller, &row.owner).await?;
        let turn = self.locks().lock(&row.id).await;
        let event = self.event(
            &row,
            "created",
            caller,
            json!({"fork_of": original.id, "provider": row.provider}),
        );
        let new = NewSandbox {
            holder: self.new_holder(),
            claimed_until_ms: now_ms + millis(CLAIM_FOR),
            sandbox: row,
        };
        let timer = TimerPlan::Set {
            due_ms: new.claimed_until_ms,
        };
        match self
            .store()
            .insert_sandbox(&new, None, quota, &event, timer)
            .await?
        {
            InsertOutcome::Inserted => Ok(Claim::held(
                self.clone(),
                new.sandbox,
                new.holder,
                Some(turn),
            )),
            InsertOutcome::OverQuota { count } => Err(ServiceError::new(
                sandyard_core::ErrorKind::QuotaExceeded,
                format!(
                    "`{}` has {count} sandboxes, as many as allowed",
                    event.owner
                ),
            )
            .hint("delete one you do not need, or ask an admin for more")),
            _ => Err(ServiceError::new(
                sandyard_core::ErrorKind::Internal,
                "a fork has neither key nor alias",
            )),
        }
    }
}
