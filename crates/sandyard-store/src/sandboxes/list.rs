//! Lists sandboxes by creation time.

use std::collections::BTreeMap;

use super::row::{columns, read};
use crate::error::{Result, StoreError};
use crate::model::{Page, Sandbox, SandboxFilter};
use crate::sql::{Record, Sql, json_pair, json_value, sql};
use crate::store::Store;

/// Most sandboxes on one page.
const MAX_LIMIT: usize = 1000;

impl Store {
    /// Lists sandboxes, the newest first unless the filter says otherwise.
    pub async fn list_sandboxes(&self, filter: &SandboxFilter) -> Result<Page<Sandbox>> {
        let limit = match filter.limit {
            0 => MAX_LIMIT,
            limit => limit.min(MAX_LIMIT),
        };
        // One more than requested shows whether there is another page.
        let order = match filter.is_oldest_first {
            true => " ORDER BY created_ms, id LIMIT ",
            false => " ORDER BY created_ms DESC, id DESC LIMIT ",
        };
        let query = sql(concat!("SELECT ", columns!(), " FROM sandboxes WHERE "));
        let query = after_cursor(filtered(query, filter), filter)?
            .add_next(order)
            .int(limit as i64 + 1);
        let rows = self.db.read("listing sandboxes", query).await?;
        let has_more = rows.len() > limit;
        let items = rows
            .iter()
            .take(limit)
            .map(read)
            .collect::<Result<Vec<_>>>()?;
        let next = items.last().filter(|_| has_more).map(cursor);
        let mut items = items;
        // The database searches for the text of a pair, which may also be part of another one.
        items.retain(|sandbox| has_metadata(sandbox, &filter.metadata));
        Ok(Page { items, next })
    }

    /// Counts sandboxes. Ignores the filter's cursor and limit.
    pub async fn count_matching(&self, filter: &SandboxFilter) -> Result<i64> {
        let query = filtered(sql("SELECT COUNT(*) FROM sandboxes WHERE "), filter);
        let rows = self.db.read("counting sandboxes", query).await?;
        let count = rows.first().map(|row| Record::first_int("sandboxes", row));
        Ok(count.transpose()?.flatten().unwrap_or(0))
    }
}

fn has_metadata(sandbox: &Sandbox, required: &BTreeMap<String, String>) -> bool {
    required
        .iter()
        .all(|(name, value)| sandbox.metadata.get(name) == Some(value))
}

fn filtered(mut query: Sql, filter: &SandboxFilter) -> Sql {
    query = if filter.statuses.is_empty() {
        query.add("status <> 'deleted'")
    } else {
        let statuses = filter.statuses.iter().map(|status| status.as_str());
        query.add("status IN ").add_texts(statuses)
    };
    for (column, value) in [
        (" AND owner = ", &filter.owner),
        (" AND project = ", &filter.project),
        (" AND location = ", &filter.location),
        (" AND template = ", &filter.template),
    ] {
        if let Some(value) = value {
            query = query.add_next(column).text(value);
        }
    }
    for (column, at_ms) in [
        (" AND claim_until_ms < ", filter.claim_ended_before_ms),
        (" AND stopped_ms < ", filter.stopped_before_ms),
        (" AND created_ms >= ", filter.created_from_ms),
    ] {
        if let Some(at_ms) = at_ms {
            query = query.add_next(column).int(at_ms);
        }
    }
    for (name, value) in &filter.metadata {
        query = query
            .add_next(" AND replace(metadata, ")
            .text(&json_pair(name, value))
            .add(", '') <> metadata");
    }
    if let Some(name) = &filter.secret {
        query = query
            .add_next(" AND replace(secrets, ")
            .text(&json_value(name))
            .add(", '') <> secrets");
    }
    if let Some(id) = &filter.volume_id {
        query = query
            .add_next(" AND replace(mounts, ")
            .text(&json_pair("volume_id", id))
            .add(", '') <> mounts");
    }
    query
}

/// Continues after an earlier page.
fn after_cursor(query: Sql, filter: &SandboxFilter) -> Result<Sql> {
    let Some(text) = &filter.cursor else {
        return Ok(query);
    };
    let (created_ms, id) = read_cursor(text)?;
    let beyond = match filter.is_oldest_first {
        true => " AND (created_ms, id) > (",
        false => " AND (created_ms, id) < (",
    };
    Ok(query
        .add_next(beyond)
        .int(created_ms)
        .add_next(", ")
        .text(id)
        .add(")"))
}

/// The cursor of the page after this sandbox.
fn cursor(last: &Sandbox) -> String {
    format!("{}-{}", last.created_ms, last.id)
}

fn read_cursor(text: &str) -> Result<(i64, &str)> {
    text.rsplit_once('-')
        .and_then(|(created_ms, id)| Some((created_ms.parse().ok()?, id)))
        .ok_or_else(|| StoreError::BadCursor {
            cursor: text.chars().take(80).collect(),
        })
}
