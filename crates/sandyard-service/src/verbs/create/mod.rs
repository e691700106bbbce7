//! Creates a sandbox.
//!
//! ```text
//!  row `creating`, claimed ──▶ instance at the provider ──▶ row `running`, timer, event
//!        │ quota, key, alias     │      │ failed: nothing left          │ failed: instance deleted
//!        ▼ refused               │      ▼ row `deleted`, with reason    ▼ row `deleting`, a timer finishes
//!                                └─▶ no capacity, unreachable: the row moves, and the next provider is tried
//! ```
//!
//! - `validate`, `row`: checks the request, builds the row
//! - `choose`, `placement`, `fallback`: which provider makes it, with which template and limits, and which provider is tried next
//! - `rights`: what users who are not admins may request
//! - `insert`, `finish`: before and after the call of the provider

mod choose;
mod fallback;
mod finish;
mod insert;
mod placement;
mod rights;
mod row;
mod template_name;
mod validate;

use sandyard_core::Caller;
use sandyard_store::model::{Idempotency, Sandbox};
use serde_json::json;

pub(crate) use validate::check_map;

pub(super) use insert::Inserted;

use crate::error::Result;
use crate::policy;
use crate::request::CreateRequest;
use crate::service::Service;
use placement::CreateContext;

impl Service {
    /// Creates a sandbox.
    pub async fn create(&self, caller: &Caller, request: CreateRequest) -> Result<Sandbox> {
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.create_now(&caller, request).await })
            .await
    }

    async fn create_now(&self, caller: &Caller, request: CreateRequest) -> Result<Sandbox> {
        let started_at = std::time::Instant::now();
        validate::check_request(&request)?;
        if let Some(policy) = &request.network {
            policy::check(policy)?;
        }
        let owner = validate::owner_of(caller, &request);
        let placeholders = self
            .placeholders(owner, &request.secrets, &request.env)
            .await?;
        let mounts = self.resolve_mounts(owner, &request.mounts).await?;
        let context = CreateContext {
            caller,
            owner,
            request: &request,
        };
        let choice = self.choose(context, &mounts).await?;
        let queue = self.plan_fallback(context, choice).await?;
        let mut row = self.new_row(context, &queue.placement)?;
        row.mounts = mounts.mounts;
        row.env.extend(placeholders);
        let idempotency = match &request.idempotency_key {
            Some(key) => Some(Idempotency {
                key: key.clone(),
                fingerprint: self.fingerprint(&row, &request)?,
            }),
            None => None,
        };
        let mut spec = self.spec_of(&row)?;
        self.set_rights(caller, &row, &mut spec);
        let mut about = json!({"template": row.template, "provider": row.provider});
        if let Some(name) = queue.unreachable_first_choice() {
            about["instead_of"] = json!(name);
        }
        let claim = match self
            .insert(caller, row, about, idempotency.as_ref())
            .await?
        {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let sandbox = self
            .create_with_fallback(context, claim, spec, queue)
            .await?;
        metrics::histogram!("sandyard_create_seconds").record(started_at.elapsed().as_secs_f64());
        Ok(sandbox)
    }
}
