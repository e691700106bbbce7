//! Lists sandboxes, newest first.

use super::row::{columns, read};
use crate::error::{StoreError, StoreResult};
use crate::model::{Page, Sandbox, SandboxFilter};
use crate::sql::{Sql, json_pair, json_value, sql};
use crate::store::Store;

/// Longest page.
const MOST: usize = 1000;

impl Store {
    /// Lists sandboxes, newest first.
    pub async fn list_sandboxes(&self, filter: &SandboxFilter) -> StoreResult<Page<Sandbox>> {
        let limit = match filter.limit {
            0 => MOST,
            limit => limit.min(MOST),
        };
        // One more than asked for tells whether there is another page.
        let query = filtered(filter)?
            .add_next(" ORDER BY created_ms DESC, id DESC LIMIT ")
            .int(limit as i64 + 1);
        let rows = self.db.read("listing sandboxes", query).await?;
        let has_more = rows.len() > limit;
        let items = rows
            .iter()
            .take(limit)
            .map(read)
            .collect::<StoreResult<Vec<_>>>()?;
        let next = items.last().filter(|_| has_more).map(cursor);
        Ok(Page { items, next })
    }
}

fn filtered(filter: &SandboxFilter) -> StoreResult<Sql> {
    let mut query = sql(concat!("SELECT ", columns!(), " FROM sandboxes WHERE "));
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
    ] {
        if let Some(value) = value {
            query = query.add_next(column).text(value);
        }
    }
    for (column, before_ms) in [
        (" AND claim_until_ms < ", filter.claim_ended_before_ms),
        (" AND stopped_ms < ", filter.stopped_before_ms),
    ] {
        if let Some(before_ms) = before_ms {
            query = query.add_next(column).int(before_ms);
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
    if let Some(text) = &filter.cursor {
        let (created_ms, id) = read_cursor(text)?;
        query = query
            .add_next(" AND (created_ms, id) < (")
            .int(created_ms)
            .add_next(", ")
            .text(id)
            .add(")");
    }
    Ok(query)
}

/// Where the page after this sandbox begins.
fn cursor(last: &Sandbox) -> String {
    format!("{}-{}", last.created_ms, last.id)
}

fn read_cursor(text: &str) -> StoreResult<(i64, &str)> {
    text.rsplit_once('-')
        .and_then(|(created_ms, id)| Some((created_ms.parse().ok()?, id)))
        .ok_or_else(|| StoreError::BadCursor {
            cursor: text.chars().take(80).collect(),
        })
}
