//! Commits the changes of an operation.

use sandyard_core::SandboxId;

use super::row::{columns, read};
use crate::error::Result;
use crate::events;
use crate::model::{NewEvent, Sandbox, SandboxPatch, TimerPlan};
use crate::sql::{Sql, sql};
use crate::store::Store;
use crate::timer_rows;

const ACTION: &str = "committing a sandbox";

impl Store {
    /// Applies `patch`, adds `events`, updates the timer and, if `is_last`, releases the claim, in one transaction. Returns none, and changes
    /// nothing, if the holder does not have the claim any more. An expired claim is valid until another operation takes it.
    pub async fn commit_sandbox(
        &self,
        id: &SandboxId,
        holder: &str,
        patch: &SandboxPatch,
        events: &[NewEvent],
        timer: TimerPlan,
        is_last: bool,
    ) -> Result<Option<Sandbox>> {
        let mut update = patched(sql("UPDATE sandboxes SET version = version + 1"), patch);
        if is_last {
            update =
                update.add(", claim_operation = NULL, claim_holder = NULL, claim_until_ms = NULL");
        }
        let update = update
            .add_next(" WHERE id = ")
            .text(id.as_str())
            .add_next(" AND claim_holder = ")
            .text(holder)
            .add(concat!(" RETURNING ", columns!()));
        if events.is_empty() && timer == TimerPlan::Keep {
            let rows = self.db.write(ACTION, update).await?;
            return rows.first().map(read).transpose();
        }
        let mut writer = self.db.writer(ACTION).await?;
        let mut tx = writer.begin().await?;
        let rows = tx.rows(update).await?;
        let Some(sandbox) = rows.first().map(read).transpose()? else {
            return Ok(None);
        };
        timer_rows::apply(&mut tx, id, &sandbox.location, timer).await?;
        // Last, because it blocks the events of other transactions until the commit.
        events::add(&mut tx, events).await?;
        tx.commit().await?;
        Ok(Some(sandbox))
    }
}

/// Adds `, column = $n` for each field the patch has.
fn patched(mut update: Sql, patch: &SandboxPatch) -> Sql {
    if let Some(status) = patch.status {
        update = update.add_next(", status = ").variant(&status);
    }
    if let Some(reason) = &patch.reason {
        update = update.add_next(", reason = ").maybe_text(reason.as_deref());
    }
    if let Some(provider) = &patch.provider {
        update = update.add_next(", provider = ").text(provider);
    }
    if let Some(location) = &patch.location {
        update = update.add_next(", location = ").text(location);
    }
    if let Some(template) = &patch.template {
        update = update.add_next(", template = ").text(template);
    }
    if let Some(provider_id) = &patch.provider_id {
        update = update.add_next(", provider_id = ").text(provider_id);
    }
    if let Some(limits) = &patch.limits {
        update = update.add_next(", limits = ").json(limits);
    }
    if let Some(limitations) = &patch.limitations {
        update = update.add_next(", lacks = ").json(limitations);
    }
    if let Some(started_ms) = patch.started_ms {
        update = update.add_next(", started_ms = ").int(started_ms);
    }
    if let Some(stopped_ms) = patch.stopped_ms {
        update = update.add_next(", stopped_ms = ").maybe_int(stopped_ms);
    }
    if let Some(used_ms) = patch.last_activity_ms {
        update = update
            .add_next(", last_activity_ms = CASE WHEN last_activity_ms < ")
            .int(used_ms)
            .add_next(" THEN ")
            .int(used_ms)
            .add(" ELSE last_activity_ms END");
    }
    if let Some(timeout_s) = patch.timeout_s {
        update = update.add_next(", timeout_s = ").int(timeout_s);
    }
    if let Some(action) = patch.timeout_action {
        update = update.add_next(", timeout_action = ").variant(&action);
    }
    if let Some(expiry) = patch.expiry {
        update = update.add_next(", expiry = ").variant(&expiry);
    }
    if let Some(fixed_end_ms) = patch.fixed_end_ms {
        update = update.add_next(", fixed_end_ms = ").maybe_int(fixed_end_ms);
    }
    if let Some(is_auto_resumed) = patch.is_auto_resumed {
        update = update
            .add_next(", is_auto_resumed = ")
            .flag(is_auto_resumed);
    }
    if let Some(deleted_ms) = patch.deleted_ms {
        update = update.add_next(", deleted_ms = ").int(deleted_ms);
    }
    if let Some(alias) = &patch.alias {
        update = update.add_next(", alias = ").maybe_text(alias.as_deref());
    }
    if let Some(metadata) = &patch.metadata {
        update = update.add_next(", metadata = ").json(metadata);
    }
    if let Some(network) = &patch.network {
        let network = network.as_ref().map(ToString::to_string);
        update = update
            .add_next(", network = ")
            .maybe_text(network.as_deref());
    }
    if let Some(ports) = &patch.public_ports {
        update = update.add_next(", public_ports = ").json(ports);
    }
    if patch.forget_secrets {
        update = update.add(", env = '{}', secrets = '{}', access_token = ''");
    }
    update
}
