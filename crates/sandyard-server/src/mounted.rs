//! A route with what its caller needs, before it is put into the router.

use std::fmt;

use axum::routing::MethodRouter;
use utoipa::openapi::path::{PathItem, Paths};
use utoipa::openapi::{RefOr, schema::Schema};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::app::App;
use crate::need::Need;
use crate::router::RouteEntry;

/// The longest body of most routes. What is longer comes in a stream, or in a route that says so.
const MAX_BODY: usize = 1 << 20;

/// A route with what its caller needs. Made by [`mount`] from `routes!(handler)`, which knows path, method and schemas.
#[derive(Clone)]
pub(crate) struct Mounted {
    pub(crate) need: Need,
    /// Credentials are asked for even on an open listener.
    pub(crate) is_strict: bool,
    /// It writes its own audit entries.
    pub(crate) has_own_audit: bool,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
    /// Every path it is reached at, with what is written about it there.
    pub(crate) paths: Vec<(String, PathItem)>,
    pub(crate) methods: MethodRouter<App>,
    /// The longest body it holds in memory; none for what the operator set.
    pub(crate) max_body: Option<usize>,
    /// Whether it is in the OpenAPI document.
    pub(crate) is_documented: bool,
}

/// Says what a route asks of its caller. A slash at the end of its path, or none, makes no difference.
pub(crate) fn mount(need: Need, operation: UtoipaMethodRouter<App>) -> Mounted {
    let (schemas, paths, methods) = operation;
    let Paths { paths, .. } = paths;
    Mounted {
        need,
        is_strict: false,
        has_own_audit: false,
        schemas,
        paths: paths.into_iter().collect(),
        methods,
        max_body: Some(MAX_BODY),
        is_documented: true,
    }
}

/// A route that is no part of the documented API, such as a page or what nodes ask of each other.
pub(crate) fn mount_plain(need: Need, path: &str, methods: MethodRouter<App>) -> Mounted {
    Mounted {
        need,
        is_strict: false,
        has_own_audit: false,
        schemas: Vec::new(),
        paths: vec![(path.to_owned(), PathItem::default())],
        methods,
        max_body: Some(MAX_BODY),
        is_documented: false,
    }
}

impl Mounted {
    /// Asks for credentials even on an open listener.
    pub(crate) fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Leaves the audit to the route: one request of it may be much or nothing.
    pub(crate) fn audits_itself(mut self) -> Self {
        self.has_own_audit = true;
        self
    }

    /// Sets the longest body it holds in memory; none for what the operator set.
    pub(crate) fn with_max_body(mut self, max: Option<usize>) -> Self {
        self.max_body = max;
        self
    }

    /// Puts the same route at another path too.
    pub(crate) fn also(mut self, path: &str) -> Self {
        if let Some((_, item)) = self.paths.first() {
            let mut item = item.clone();
            let suffix = path.rsplit('/').next().unwrap_or(path).replace('-', "_");
            rename_operations(&mut item, |id| format!("{id}_by_{suffix}"));
            self.paths.push((path.to_owned(), item));
        }
        self
    }

    /// The same route elsewhere: `place` says where each path goes, or that it goes nowhere.
    pub(crate) fn elsewhere(
        &self,
        prefix_of_ids: &str,
        place: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let paths: Vec<_> = self
            .paths
            .iter()
            .filter_map(|(path, item)| {
                let mut item = item.clone();
                rename_operations(&mut item, |id| format!("{prefix_of_ids}{id}"));
                Some((place(path)?, item))
            })
            .collect();
        (!paths.is_empty()).then(|| Self {
            paths,
            ..self.clone()
        })
    }

    /// Its lines of the route table.
    pub(crate) fn entries(&self) -> Vec<RouteEntry> {
        let entry = |path: &str, method: &str, operation: &str| RouteEntry {
            method: method.to_owned(),
            path: path.to_owned(),
            operation: operation.to_owned(),
            need: self.need,
            is_strict: self.is_strict,
        };
        self.paths
            .iter()
            .flat_map(|(path, item)| {
                let operations = operations(item);
                if operations.is_empty() {
                    return vec![entry(path, "ANY", path)];
                }
                operations
                    .into_iter()
                    .map(|(method, id)| entry(path, method, &id))
                    .collect()
            })
            .collect()
    }
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

/// Methods and operation ids of a path.
fn operations(item: &PathItem) -> Vec<(&'static str, String)> {
    [
        ("GET", &item.get),
        ("PUT", &item.put),
        ("POST", &item.post),
        ("DELETE", &item.delete),
        ("PATCH", &item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| {
        let id = operation.as_ref()?.operation_id.clone();
        Some((method, id.unwrap_or_default()))
    })
    .collect()
}

/// Operation ids are unique in a document, so every copy gets ids of its own.
fn rename_operations(item: &mut PathItem, rename: impl Fn(&str) -> String) {
    for operation in [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
    ]
    .into_iter()
    .flatten()
    {
        operation.operation_id = operation.operation_id.as_deref().map(&rename);
    }
}
