//! The OpenAPI 3.1 document of all dialects, built from the routes, and a page that shows it.
//!
//! Handlers describe their own parameters, bodies and responses. This module adds what is the same everywhere: the error
//! responses of every route, its credentials, the request ID, examples, and the envelopes of the enveloped dialect.

mod closed;
mod errors;
mod examples;
mod static_page;

use std::sync::LazyLock;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::access::Access;
use crate::e2b::E2bError;
use crate::envelope::EnvelopedError;
use crate::error::{ErrorBody, PartialOutputFields};
use crate::native::ONE_OF;
use crate::route::Route;
use errors::Dialect;
pub(crate) use static_page::StaticPage;

/// The page. It loads nothing from other hosts.
const PAGE: &str = include_str!("docs.html");
/// Lets the page run only its own script and styles, and send requests only to this server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Media types whose bodies are bytes, not JSON.
const BINARY: [&str; 2] = ["application/octet-stream", "application/x-tar"];

/// What does not depend on the routes: title, groups of operations, shared parameters and headers, ways to authenticate.
const DOCUMENT: &str = include_str!("document.json");

/// The page that shows the document.
pub(crate) async fn get_docs(headers: HeaderMap) -> Response {
    static DOCS: LazyLock<StaticPage> =
        LazyLock::new(|| StaticPage::new("text/html; charset=utf-8", PAGE));
    let policy = (header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    ([policy], DOCS.respond(&headers)).into_response()
}

/// Lists the providers where a request names one.
pub(crate) fn name_providers(document: &mut Value, names: &[&str]) {
    let schemas = document["components"]["schemas"].as_object_mut();
    for schema in schemas.into_iter().flat_map(Map::values_mut) {
        let Some(provider) = schema.pointer_mut("/properties/provider") else {
            continue;
        };
        // In responses the list is open: a newer server may have other providers.
        if provider.get("pattern").is_some() {
            let names = names.iter().map(|name| json!(name));
            provider["enum"] = names.chain([Value::Null]).collect();
        }
    }
}

/// Builds the document of these routes.
pub(crate) fn build(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    add_schema::<ErrorBody>(&mut schemas);
    add_schema::<PartialOutputFields>(&mut schemas);
    add_schema::<EnvelopedError>(&mut schemas);
    add_schema::<E2bError>(&mut schemas);
    for route in routes.iter().filter(|route| route.is_documented) {
        for (name, schema) in &route.schemas {
            schemas.insert(name.clone(), to_json(schema));
        }
        for (path, item) in &route.paths {
            let item = to_json(item);
            let methods = paths.entry(path.clone()).or_insert_with(|| json!({}));
            for (method, mut operation) in item.as_object().cloned().unwrap_or_default() {
                complete(&mut operation, route.access, path);
                methods[method] = operation;
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
    closed::close_requests(&paths, &mut schemas);
    let mut document: Value = serde_json::from_str(DOCUMENT).expect("the document is valid JSON");
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document["info"]["description"] = include_str!("introduction.md").into();
    document["paths"] = paths.into();
    document["components"]["schemas"] = schemas.into();
    document["components"]["responses"] = errors::responses().into();
    document
}

fn add_schema<T: ToSchema + PartialSchema>(schemas: &mut Map<String, Value>) {
    schemas.insert(T::name().into_owned(), to_json(T::schema()));
}

fn to_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("an API description consists of strings and numbers")
}

/// Adds what all operations share.
fn complete(operation: &mut Value, access: Access, path: &str) {
    let dialect = Dialect::of(path);
    let id = operation["operationId"].as_str().unwrap_or_default();
    let example = examples::find(id);
    if let Some(content) = operation["requestBody"]["content"].as_object_mut() {
        for (media_type, media) in content {
            describe_binary(media_type, media);
            set_example(media, &example["request"]);
        }
    } else {
        // Indexing created the field.
        remove(operation, "requestBody");
    }
    let Some(responses) = operation["responses"].as_object_mut() else {
        return;
    };
    for (status, response) in responses.iter_mut() {
        let Some(content) = response.get_mut("content").and_then(Value::as_object_mut) else {
            continue;
        };
        for (media_type, media) in content {
            describe_binary(media_type, media);
            let key = match media_type.as_str() {
                "text/event-stream" => "stream",
                "application/octet-stream" if !example["binary"].is_null() => "binary",
                _ => "response",
            };
            if key == "stream" {
                // A stream is not one value, so it has no schema.
                *media = json!({});
            }
            set_example(media, &example[key]);
            if dialect == Dialect::Enveloped && media_type == "application/json" {
                wrap(status, media);
            }
        }
    }
    errors::add(responses, dialect, access);
    for response in responses.values_mut() {
        if response.get("$ref").is_none() {
            response["headers"]["X-Request-ID"] = json!({"$ref": "#/components/headers/RequestId"});
        }
    }
    let request_id = json!({"$ref": "#/components/parameters/RequestId"});
    match operation["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(request_id),
        None => operation["parameters"] = json!([request_id]),
    }
    operation["security"] = match access {
        Access::Public => json!([]),
        _ => json!([{"bearer": []}, {"key": []}]),
    };
}

/// Replaces the schema of a body of bytes: the derive describes it as a list of numbers.
fn describe_binary(media_type: &str, media: &mut Value) {
    if BINARY.contains(&media_type) {
        media["schema"] = json!({"type": "string", "format": "binary"});
    }
}

fn set_example(media: &mut Value, example: &Value) {
    if !example.is_null() {
        media["example"] = example.clone();
    }
}

fn remove(value: &mut Value, field: &str) {
    value.as_object_mut().map(|fields| fields.remove(field));
}

/// Puts the envelope around the schema and the example of a response.
fn wrap(status: &str, media: &mut Value) {
    if !status.starts_with('2') {
        *media = errors::media(Dialect::Enveloped, status);
        return;
    }
    media["schema"] = json!({
        "type": "object",
        "required": ["code", "msg", "data"],
        "properties": {
            "code": {"type": "integer", "const": 200, "description": "HTTP status of the response."},
            "msg": {"type": "string", "description": "Summary of the result for people."},
            "data": media["schema"].take(),
        },
    });
    if let Some(example) = media.get_mut("example") {
        *example = json!({"code": 200, "msg": "Request success", "data": example.take()});
    }
}
