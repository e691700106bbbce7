//! Makes a sandbox.
//!
//! ```text
//!  row `creating`, claimed ──▶ instance at the provider ──▶ row `running`, timer, event
//!        │ quota, key, alias     │      │ failed: nothing left          │ failed: instance deleted
//!        ▼ refused               │      ▼ row `deleted`, with why       ▼ row `deleting`, a timer sees to it
//!                                └─▶ no room, not reached: the row moves, and the next provider is asked
//! ```
//!
//! - `words`, `row`: what was asked for, checked and written down
//! - `choose`, `fall_back`: which provider makes it, and which one instead
//! - `rights`: what users may ask of providers who are not admins
//! - `insert`, `finish`: before the provider is asked, and after

mod choose;
mod fall_back;
mod finish;
mod insert;
mod rights;
mod row;
mod words;

use sandyard_core::Caller;
use sandyard_store::model::{Idempotency, Sandbox};
use serde_json::json;

pub(crate) use words::check_map;

pub(super) use insert::Inserted;

use crate::error::ServiceResult;
use crate::policy;
use crate::request::CreateRequest;
use crate::service::Service;
use fall_back::Asked;

impl Service {
    /// Makes a sandbox.
    pub async fn create(&self, caller: &Caller, request: CreateRequest) -> ServiceResult<Sandbox> {
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.create_now(&caller, request).await })
            .await
    }

    async fn create_now(&self, caller: &Caller, request: CreateRequest) -> ServiceResult<Sandbox> {
        let began = std::time::Instant::now();
        words::check_words(&request)?;
        if let Some(policy) = &request.network {
            policy::check(policy)?;
        }
        let owner = words::owner_of(caller, &request);
        let placeholders = self
            .placeholders(owner, &request.secrets, &request.env)
            .await?;
        let found = self.find_mounts(owner, &request.mounts).await?;
        let asked = Asked {
            caller,
            owner,
            request: &request,
        };
        let choice = self.choose(asked, &found).await?;
        let line = self.line_up(asked, choice).await?;
        let mut row = self.new_row(asked, &line.fit)?;
        row.mounts = found.mounts;
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
        if let Some(name) = line.passed_over() {
            about["instead_of"] = json!(name);
        }
        let claim = match self
            .insert(caller, row, about, idempotency.as_ref())
            .await?
        {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let sandbox = self.make_by_line(asked, claim, spec, line).await?;
        metrics::histogram!("sandyard_create_seconds").record(began.elapsed().as_secs_f64());
        Ok(sandbox)
    }
}
