//! Reads the row of a sandbox.

use sandyard_core::SandboxId;
use sqlx::any::AnyRow;

use crate::error::{Result, StoreError};
use crate::model::Sandbox;
use crate::sql::Record;

/// All columns, for `SELECT` and `RETURNING`. Never `*`: a newer server may add columns under a running one.
macro_rules! columns {
    () => {
        "id, owner, alias, project, provider, location, provider_id, template, status, reason, limits, metadata, env, \
         network, secrets, ports, public_ports, mounts, access_token, timeout_s, timeout_action, expiry, is_auto_resumed, lacks, \
         created_ms, started_ms, stopped_ms, last_activity_ms, fixed_end_ms, deleted_ms, version, claim_operation, \
         claim_holder, claim_until_ms"
    };
}
pub(super) use columns;

pub(super) const TABLE: &str = "sandboxes";

/// Reads a row of [`columns`].
pub(super) fn read(row: &AnyRow) -> Result<Sandbox> {
    let record = Record::new(TABLE, row);
    let claim = match record.maybe_text("claim_holder")? {
        Some(holder) => Some((
            record.variant("claim_operation")?,
            holder,
            record.int("claim_until_ms")?,
        )),
        None => None,
    };
    Ok(Sandbox {
        id: read_id(record.text("id")?)?,
        owner: record.text("owner")?,
        alias: record.maybe_text("alias")?,
        project: record.maybe_text("project")?,
        provider: record.text("provider")?,
        location: record.text("location")?,
        provider_id: record.maybe_text("provider_id")?,
        template: record.text("template")?,
        status: record.variant("status")?,
        reason: record.maybe_text("reason")?,
        limits: record.json("limits")?,
        metadata: record.json("metadata")?,
        env: record.json("env")?,
        network: record.maybe_json("network")?,
        secrets: record.json("secrets")?,
        ports: record.json("ports")?,
        public_ports: record.json("public_ports")?,
        mounts: record.json("mounts")?,
        access_token: record.text("access_token")?,
        timeout_s: record.int("timeout_s")?,
        timeout_action: record.variant("timeout_action")?,
        expiry: record.variant("expiry")?,
        is_auto_resumed: record.flag("is_auto_resumed")?,
        limitations: record.json("lacks")?,
        created_ms: record.int("created_ms")?,
        started_ms: record.maybe_int("started_ms")?,
        stopped_ms: record.maybe_int("stopped_ms")?,
        last_activity_ms: record.int("last_activity_ms")?,
        fixed_end_ms: record.maybe_int("fixed_end_ms")?,
        deleted_ms: record.maybe_int("deleted_ms")?,
        version: record.int("version")?,
        claim,
    })
}

/// Reads a sandbox's id.
pub(super) fn read_id(text: String) -> Result<SandboxId> {
    text.parse().map_err(|error| StoreError::Corrupt {
        table: TABLE,
        detail: format!("`id`: {error}"),
    })
}
