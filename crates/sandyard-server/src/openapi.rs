//! The OpenAPI 3.1 document of all dialects, made from the routes, and a page that shows it.
//!
//! Handlers describe what they take and what they give. What is the same everywhere is added here: the errors of every
//! route, its credentials, the request id, and the envelopes of the enveloped dialect.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::access::Access;
use crate::e2b::{self, E2bError};
use crate::envelope::{self, EnvelopedError};
use crate::error::{ErrorBody, PartialOutputFields};
use crate::native::ONE_OF;
use crate::route::Route;

/// The page; it needs nothing from elsewhere.
const PAGE: &str = include_str!("docs.html");
/// Only its own script and styles run, and it asks only this server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Errors any route may answer.
const COMMON: [(u16, &str); 6] = [
    (400, "The request cannot be read."),
    (413, "More bytes than are taken."),
    (422, "A field has a value that makes no sense."),
    (
        429,
        "Too many requests, or as many sandboxes as one may have.",
    ),
    (500, "Our fault."),
    (503, "Not ready, or no room."),
];
/// Errors of routes that ask who is asking.
const GUARDED: [(u16, &str); 7] = [
    (401, "No credentials, or they are not good."),
    (403, "Good credentials without the right to do this."),
    (404, "No such thing, or not yours."),
    (
        408,
        "The operation exceeded its time limit. A command was killed; the response holds what it wrote until then.",
    ),
    (409, "The state of things does not allow this."),
    (502, "Where the sandbox runs, something failed."),
    (507, "The sandbox's disk is full."),
];
/// The error that only E2B's dialect has: elsewhere this is 408.
const TOO_LATE: (u16, &str) = (504, "Where the sandbox runs, it took too long.");

/// The page that shows the document.
pub(crate) async fn get_docs() -> Response {
    let policy = (header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    ([policy], Html(PAGE)).into_response()
}

/// The document of these routes.
pub(crate) fn build(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    add_schema(&mut schemas, &ErrorBody::name(), ErrorBody::schema());
    add_schema(
        &mut schemas,
        &PartialOutputFields::name(),
        PartialOutputFields::schema(),
    );
    add_schema(
        &mut schemas,
        &EnvelopedError::name(),
        EnvelopedError::schema(),
    );
    add_schema(&mut schemas, &E2bError::name(), E2bError::schema());
    for route in routes.iter().filter(|route| route.is_documented) {
        for (name, schema) in &route.schemas {
            add_schema(&mut schemas, name, schema);
        }
        for (path, item) in &route.paths {
            let item = to_json(item);
            let place = paths.entry(path.clone()).or_insert_with(|| json!({}));
            for (method, mut operation) in item.as_object().cloned().unwrap_or_default() {
                complete(&mut operation, route, path);
                place[method] = operation;
            }
        }
    }
    for (name, fields) in ONE_OF {
        let alternatives: Vec<_> = fields
            .iter()
            .map(|field| json!({"required": [field]}))
            .collect();
        schemas[name]["anyOf"] = alternatives.into();
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sandyard",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Isolated Linux sandboxes for AI agents. Every dialect of this document speaks of the same sandboxes. A slash at the end of a path, or none, makes no difference.",
        },
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A token of a login, or a key."},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    })
}

fn tags() -> Value {
    [
        ("sandboxes", "Make, find, pause and delete sandboxes."),
        ("commands", "Run commands."),
        ("files", "Read and write files."),
        ("ports", "Reach what listens in a sandbox."),
        (
            "network",
            "What sandboxes reach, and secrets they use without seeing them.",
        ),
        ("templates", "What sandboxes start from."),
        ("volumes", "Folders that outlive sandboxes."),
        ("monitoring", "What sandboxes do and use."),
        ("docker", "The Docker-style contract: `/api/sandboxes`."),
        (
            "e2b",
            "E2B's contract, for its SDKs: `/e2b`, a listener of its own and `api.{domain}`.",
        ),
        ("accounts", "Login, users, keys, audit."),
        ("operations", "For whoever runs the server."),
    ]
    .map(|(name, description)| json!({"name": name, "description": description}))
    .to_vec()
    .into()
}

fn add_schema(schemas: &mut Map<String, Value>, name: &str, schema: impl serde::Serialize) {
    schemas.insert(name.to_owned(), to_json(schema));
}

fn to_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("what describes an API is made of strings and numbers")
}

/// Adds to an operation what every one has.
fn complete(operation: &mut Value, route: &Route, path: &str) {
    let is_enveloped = envelope::is_enveloped(path);
    let responses = operation["responses"].as_object_mut();
    let Some(responses) = responses else { return };
    if is_enveloped {
        for (status, response) in responses.iter_mut() {
            wrap(status, response);
        }
    }
    let is_e2b = path.starts_with(e2b::PREFIX);
    let error = if is_enveloped {
        EnvelopedError::name()
    } else if is_e2b {
        E2bError::name()
    } else {
        ErrorBody::name()
    };
    let is_guarded = route.access != Access::Public;
    let guarded = if is_guarded {
        &GUARDED[..]
    } else {
        &GUARDED[..1]
    };
    let own = (is_e2b && is_guarded).then_some(&TOO_LATE);
    for (status, description) in COMMON.iter().chain(guarded).chain(own) {
        responses
            .entry(status.to_string())
            .or_insert_with(|| error_response(*status, description, &error));
    }
    for response in responses.values_mut() {
        // Streams have no schema: what they hold is not one value.
        if let Some(stream) = response.pointer_mut("/content/text~1event-stream") {
            *stream = json!({});
        }
        response["headers"]["X-Request-ID"] = json!({
            "description": "The request's id: the client's, or ours.",
            "schema": {"type": "string"},
        });
    }
    let id = json!({
        "name": "X-Request-ID", "in": "header", "required": false,
        "description": "Names the request; made up if it is left out.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    });
    match operation["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(id),
        None => operation["parameters"] = json!([id]),
    }
    operation["security"] = match route.access {
        Access::Public => json!([]),
        _ => json!([{"bearer": []}, {"key": []}]),
    };
}

fn error_response(status: u16, description: &str, schema: &str) -> Value {
    let mut response = json!({
        "description": description,
        "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}},
    });
    if status == 401 {
        response["headers"]["WWW-Authenticate"] = json!({"schema": {"type": "string"}});
    }
    if matches!(status, 429 | 503) {
        response["headers"]["Retry-After"] = json!({
            "description": "Seconds after which trying again makes sense.",
            "schema": {"type": "integer"},
        });
    }
    response
}

/// Puts the envelope around the schema of an answer.
fn wrap(status: &str, response: &mut Value) {
    let Some(schema) = response["content"]["application/json"].get_mut("schema") else {
        // Indexing made a place where there was none.
        if response["content"] == json!({"application/json": null}) || response["content"].is_null()
        {
            response.as_object_mut().map(|it| it.remove("content"));
        } else if let Some(content) = response["content"].as_object_mut() {
            content.retain(|_, media| !media.is_null());
        }
        return;
    };
    if !status.starts_with('2') {
        *schema = json!({"$ref": format!("#/components/schemas/{}", EnvelopedError::name())});
        return;
    }
    *schema = json!({
        "type": "object",
        "required": ["code", "msg", "data"],
        "properties": {
            "code": {"type": "integer", "const": 200},
            "msg": {"type": "string"},
            "data": schema.take(),
        },
    });
}
