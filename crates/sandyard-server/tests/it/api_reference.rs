//! The OpenAPI document is a reference that a first-time user understands: every operation, field, parameter and response has a
//! real description, every body an example that fits its schema, and the stated bounds are those of `sandyard_core::bounds`.

use sandyard_core::bounds;
use serde_json::Value;

use crate::app::{Actor, TestApp};

/// Phrases that told readers nothing. The word check of the repository has the full list.
const EMPTY_PHRASES: [&str; 12] = [
    "if it is left out",
    "if not said",
    "so many",
    "our fault",
    "it is so",
    "of late",
    "whoever",
    "than are taken",
    "shall",
    "looked at",
    "where it stands",
    "its maker",
];

/// Words that describe nothing when a sentence consists of little else.
const PRONOUNS: [&str; 16] = [
    "it", "its", "they", "that", "this", "those", "what", "which", "whose", "where", "when", "who",
    "why", "how", "whether", "there",
];

async fn document() -> Value {
    let app = TestApp::new().await;
    app.get(Actor::Anonymous, "/openapi.json").await.ok()
}

fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, methods)| {
            let name = move |method: &str| format!("{method} {path}");
            let methods = methods.as_object().unwrap();
            methods.iter().map(move |(method, it)| (name(method), it))
        })
        .collect()
}

/// Says what is wrong with a description, if anything is.
fn problem(text: Option<&str>, least_words: usize) -> Option<String> {
    let Some(text) = text else {
        return Some("has no description".to_owned());
    };
    let lower = text.to_lowercase();
    if let Some(phrase) = EMPTY_PHRASES.iter().find(|phrase| lower.contains(*phrase)) {
        return Some(format!("says `{phrase}`: {text}"));
    }
    let word_count = text.split_whitespace().count();
    if word_count < least_words {
        return Some(format!("has a description of {word_count} words: {text}"));
    }
    let is_hollow = |sentence: &str| {
        let word_count: Vec<_> = sentence.split_whitespace().collect();
        let first = word_count.first().map(|word| word.to_lowercase());
        word_count.len() <= 3 && first.is_some_and(|first| PRONOUNS.contains(&first.as_str()))
    };
    let hollow = text
        .split_terminator(". ")
        .find(|sentence| is_hollow(sentence));
    hollow.map(|sentence| format!("has a sentence without content: {sentence}"))
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

#[tokio::test]
async fn every_operation_has_a_summary_a_description_and_examples() {
    let document = document().await;
    let mut problems = Vec::new();
    for (name, operation) in operations(&document) {
        let mut note = |what: String| problems.push(format!("{name}: {what}"));
        if let Some(what) = problem(operation["summary"].as_str(), 2) {
            note(format!("the summary {what}"));
        }
        if operation["summary"]
            .as_str()
            .is_some_and(|text| text.ends_with('.'))
        {
            note("the summary ends with a full stop".to_owned());
        }
        if let Some(what) = problem(operation["description"].as_str(), 4) {
            note(format!("the operation {what}"));
        }
        for parameter in operation["parameters"].as_array().unwrap() {
            let parameter = resolve(&document, parameter);
            if let Some(what) = problem(parameter["description"].as_str(), 3) {
                note(format!("the parameter {} {what}", parameter["name"]));
            }
        }
        let bodies = operation["requestBody"]["content"].as_object();
        for (media_type, media) in bodies.into_iter().flatten() {
            if media["example"].is_null() {
                note(format!("the request body in {media_type} has no example"));
            }
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolve(&document, response);
            if let Some(what) = problem(response["description"].as_str(), 2) {
                note(format!("the response {status} {what}"));
            }
            let content = response["content"].as_object();
            for (media_type, media) in content.into_iter().flatten() {
                if media["example"].is_null() {
                    note(format!(
                        "the response {status} in {media_type} has no example"
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn every_schema_and_field_has_a_description() {
    let document = document().await;
    let mut problems = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        if let Some(what) = problem(schema["description"].as_str(), 2) {
            problems.push(format!("{name} {what}"));
        }
        check_fields(name, schema, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn check_fields(name: &str, schema: &Value, problems: &mut Vec<String>) {
    for (field, value) in schema["properties"].as_object().into_iter().flatten() {
        // The description of an optional reference is beside the reference.
        let beside = |value: &Value| value["oneOf"][0]["description"].as_str().map(str::to_owned);
        let text = value["description"].as_str().map(str::to_owned);
        if let Some(what) = problem(text.or_else(|| beside(value)).as_deref(), 2) {
            problems.push(format!("{name}.{field} {what}"));
        }
        check_fields(&format!("{name}.{field}"), value, problems);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            check_fields(name, part, problems);
        }
    }
}

#[tokio::test]
async fn examples_fit_their_schemas() {
    let document = document().await;
    let mut problems = Vec::new();
    let mut check = |name: String, content: &Value| {
        for media in content.as_object().into_iter().flat_map(|it| it.values()) {
            if !media["schema"].is_null() && !media["example"].is_null() {
                let found = misfit(&document, &media["schema"], &media["example"], "example");
                problems.extend(found.map(|what| format!("{name}: {what}")));
            }
        }
    };
    for (name, operation) in operations(&document) {
        check(
            format!("{name} request"),
            &operation["requestBody"]["content"],
        );
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolve(&document, response);
            check(format!("{name} {status}"), &response["content"]);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Says where a value does not fit a schema: type, required and unknown fields, enumerations and bounds.
fn misfit(document: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let schema = resolve(document, schema);
    for key in ["anyOf", "oneOf"] {
        if let Some(parts) = schema[key].as_array() {
            // `anyOf` beside `properties` only says which fields are required.
            let fits = |part: &Value| misfit(document, part, value, at).is_none();
            if schema["properties"].is_null() && !parts.iter().any(fits) {
                return Some(format!("{at} fits no alternative of {key}: {value}"));
            }
        }
    }
    let types: Vec<_> = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec![type_of(value)],
    };
    let is_type = |name: &&str| *name == type_of(value) || (*name == "number" && value.is_number());
    if !types.iter().any(is_type) {
        return Some(format!("{at} is {value}, not {types:?}"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Some(format!("{at} is {value}, not one of {allowed:?}"));
    }
    let is_beyond = |number: f64| {
        schema["minimum"]
            .as_f64()
            .is_some_and(|least| number < least)
            || schema["maximum"].as_f64().is_some_and(|most| number > most)
    };
    if value.as_f64().is_some_and(is_beyond) {
        return Some(format!("{at} is {value}, beyond its bounds"));
    }
    let mut items = value.as_array().into_iter().flatten();
    if let Some(found) = items.find_map(|it| misfit(document, &schema["items"], it, at)) {
        return Some(found);
    }
    let fields = value.as_object()?;
    let (properties, required) = properties(document, schema);
    if let Some(missing) = required.iter().find(|field| !fields.contains_key(*field)) {
        return Some(format!("{at} has no field {missing}"));
    }
    fields.iter().find_map(|(name, field)| {
        let found = properties.iter().find(|(known, _)| *known == name);
        match (found, &schema["additionalProperties"]) {
            (Some((_, part)), _) => misfit(document, part, field, &format!("{at}.{name}")),
            (None, Value::Object(_)) => misfit(
                document,
                &schema["additionalProperties"],
                field,
                &format!("{at}.{name}"),
            ),
            (None, _) if properties.is_empty() => None,
            (None, _) => Some(format!("{at} has the unknown field {name}")),
        }
    })
}

/// The properties and required fields of a schema and of all parts that it is composed of.
fn properties<'a>(
    document: &'a Value,
    schema: &'a Value,
) -> (Vec<(&'a String, &'a Value)>, Vec<String>) {
    let mut properties: Vec<_> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .collect();
    let names = schema["required"].as_array().into_iter().flatten();
    let mut required: Vec<_> = names.filter_map(Value::as_str).map(str::to_owned).collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let (more, also) = self::properties(document, resolve(document, part));
        properties.extend(more);
        required.extend(also);
    }
    (properties, required)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[tokio::test]
async fn stated_bounds_are_those_of_core() {
    let document = document().await;
    let schemas = &document["components"]["schemas"];
    for (schema, field, bound, most) in [
        ("CreateSandbox", "user_id", "maxLength", bounds::MAX_USER_ID),
        ("CreateSandbox", "alias", "maxLength", bounds::MAX_ALIAS),
        ("CreateSandbox", "name", "maxLength", bounds::MAX_ALIAS),
        (
            "CreateSandbox",
            "provider",
            "maxLength",
            bounds::MAX_PROVIDER,
        ),
        (
            "CreateSandbox",
            "template_id",
            "maxLength",
            bounds::MAX_TEMPLATE,
        ),
        (
            "CreateSandbox",
            "env",
            "maxProperties",
            bounds::MAX_MAP_ENTRIES,
        ),
        (
            "CreateContainer",
            "project_name",
            "maxLength",
            bounds::MAX_PROJECT,
        ),
        (
            "CreateContainer",
            "provider",
            "maxLength",
            bounds::MAX_PROVIDER,
        ),
        (
            "CreateContainer",
            "image",
            "maxLength",
            bounds::MAX_TEMPLATE,
        ),
        ("CreateVolume", "name", "maxLength", bounds::MAX_VOLUME_NAME),
        ("PutSecret", "value", "maxLength", bounds::MAX_SECRET_BYTES),
        ("PutSecret", "hosts", "maxItems", bounds::MAX_SECRET_HOSTS),
        ("RunCommand", "cwd", "maxLength", bounds::MAX_PATH),
    ] {
        assert_eq!(
            schemas[schema]["properties"][field][bound], most,
            "{schema}.{field}"
        );
    }
    let parameter = |path: &str, method: &str, name: &str| {
        let parameters = document["paths"][path][method]["parameters"].as_array();
        let found = parameters.unwrap().iter().find(|it| it["name"] == name);
        found.unwrap()["schema"]["maxLength"].clone()
    };
    assert_eq!(parameter("/sandboxes", "get", "owner"), bounds::MAX_USER_ID);
    assert_eq!(
        parameter("/sandboxes", "get", "user_id"),
        bounds::MAX_USER_ID
    );
    assert_eq!(
        parameter("/sandboxes", "get", "project"),
        bounds::MAX_PROJECT
    );
    assert_eq!(parameter("/volumes", "get", "user_id"), bounds::MAX_USER_ID);
    assert_eq!(
        parameter("/api/sandboxes", "get", "project_name"),
        bounds::MAX_PROJECT
    );
    assert_eq!(
        parameter("/secrets/{name}", "put", "name"),
        bounds::MAX_SECRET_NAME
    );
    assert_eq!(
        parameter("/sandboxes/create", "post", "Idempotency-Key"),
        bounds::MAX_IDEMPOTENCY_KEY
    );
}
