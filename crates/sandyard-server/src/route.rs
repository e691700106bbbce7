//! A route of the API with what it requires of its caller, before the router mounts it.

use std::fmt;

use axum::routing::MethodRouter;
use utoipa::openapi::Deprecated;
use utoipa::openapi::path::{Operation, PathItem, Paths};
use utoipa::openapi::{RefOr, schema::Schema};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::access::Access;
use crate::app::App;

/// Longest body, in bytes, of most routes. Longer content is streamed, or its route sets another limit.
const MAX_BODY: usize = 1 << 20;

/// A route with what it requires of its caller. [`route`] makes it from `routes!(handler)`, which knows path, method and schemas.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) access: Access,
    /// Whether an open listener requires credentials for it too.
    pub(crate) is_strict: bool,
    /// Whether it writes its own audit entries.
    pub(crate) has_own_audit: bool,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
    /// Every path of the route, with its OpenAPI description.
    pub(crate) paths: Vec<(String, PathItem)>,
    pub(crate) methods: MethodRouter<App>,
    /// Longest body, in bytes, that it holds in memory; none: the operator's limit.
    pub(crate) max_body: Option<usize>,
    /// Whether the OpenAPI document contains it.
    pub(crate) is_documented: bool,
}

/// One line of the route table: a method and a path. The tenant matrix is tested from it.
#[derive(Clone, Debug)]
pub struct RouteEntry {
    /// The method; `ANY` for all of them.
    pub method: String,
    /// The path, with `{names}`.
    pub path: String,
    /// The operation id; the path when it has none.
    pub operation: String,
    /// What it requires of its caller.
    pub access: Access,
    /// Whether an open listener requires that too.
    pub is_strict: bool,
}

/// A documented route. It is served with and without a slash at the end of its path.
pub(crate) fn route(access: Access, operation: UtoipaMethodRouter<App>) -> Route {
    let (schemas, paths, methods) = operation;
    let Paths { paths, .. } = paths;
    Route {
        schemas,
        paths: paths.into_iter().collect(),
        is_documented: true,
        ..undocumented_route(access, "", methods)
    }
}

/// A route that is not part of the documented API, such as a page or a request of another node.
pub(crate) fn undocumented_route(access: Access, path: &str, methods: MethodRouter<App>) -> Route {
    Route {
        access,
        is_strict: false,
        has_own_audit: false,
        schemas: Vec::new(),
        paths: vec![(path.to_owned(), PathItem::default())],
        methods,
        max_body: Some(MAX_BODY),
        is_documented: false,
    }
}

impl Route {
    /// Requires credentials on an open listener too.
    pub(crate) fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Leaves the audit to the handler, whose requests may hold several operations or none.
    pub(crate) fn audits_itself(mut self) -> Self {
        self.has_own_audit = true;
        self
    }

    /// Sets the longest body, in bytes, that it holds in memory; none: the operator's limit.
    pub(crate) fn with_max_body(mut self, max: Option<usize>) -> Self {
        self.max_body = max;
        self
    }

    /// Serves the same route at another path too.
    pub(crate) fn also(mut self, path: &str) -> Self {
        if let Some((_, item)) = self.paths.first() {
            let mut item = item.clone();
            let suffix = path.rsplit('/').next().unwrap_or(path);
            let suffix = suffix.trim_matches(['{', '}']).replace('-', "_");
            rename_operations(&mut item, |id| format!("{id}_by_{suffix}"));
            self.paths.push((path.to_owned(), item));
        }
        self
    }

    /// Serves the same route at an older path too, which the OpenAPI document marks as deprecated.
    pub(crate) fn deprecated_alias(self, path: &str) -> Self {
        let mut route = self.also(path);
        let alias = route.paths.last_mut();
        for operation in alias.into_iter().flat_map(|(_, item)| operations_mut(item)) {
            operation.deprecated = Some(Deprecated::True);
        }
        route
    }

    /// Copies the route to other paths: `relocate` gives the new path of each, or none to leave it out.
    pub(crate) fn relocated(
        &self,
        id_prefix: &str,
        relocate: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let paths: Vec<_> = self
            .paths
            .iter()
            .filter_map(|(path, item)| {
                let mut item = item.clone();
                rename_operations(&mut item, |id| format!("{id_prefix}{id}"));
                Some((relocate(path)?, item))
            })
            .collect();
        (!paths.is_empty()).then(|| Self {
            paths,
            ..self.clone()
        })
    }

    /// The lines of the route table that describe it.
    pub(crate) fn entries(&self) -> Vec<RouteEntry> {
        let entry = |path: &str, method: &str, operation: &str| RouteEntry {
            method: method.to_owned(),
            path: path.to_owned(),
            operation: operation.to_owned(),
            access: self.access,
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

impl fmt::Debug for Route {
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

/// Renames operation ids: they must be unique in the document, so every copy gets its own.
fn rename_operations(item: &mut PathItem, rename: impl Fn(&str) -> String) {
    for operation in operations_mut(item) {
        operation.operation_id = operation.operation_id.as_deref().map(&rename);
    }
}

fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
    ]
    .into_iter()
    .flatten()
}
