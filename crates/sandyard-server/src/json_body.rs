//! Reads a JSON body and names the field that is wrong, missing or unknown.
//!
//! A field that no request type has is usually a misspelt one, so it is refused with the likely name. E2B's clients send fields of later
//! versions; their routes ignore what they do not know.

use std::fmt;

use sandyard_config::nearest;
use sandyard_core::ErrorKind;
use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};

use crate::error::ApiError;

/// An extension of requests whose unknown fields are ignored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IgnoreUnknownFields;

/// Reads a body. Malformed JSON is 400; a missing, wrong or unknown field is 422.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], allow_unknown: bool) -> Result<T, ApiError> {
    let mut unknown = None;
    let mut json = serde_json::Deserializer::from_slice(body);
    let mut note = |path: serde_ignored::Path<'_>| {
        unknown.get_or_insert_with(|| path.to_string());
    };
    let fields = serde_ignored::Deserializer::new(&mut json, &mut note);
    let value = serde_path_to_error::deserialize(fields).map_err(|error| wrong_field(&error))?;
    json.end().map_err(|error| malformed(&error))?;
    match unknown {
        Some(field) if !allow_unknown => Err(unknown_field::<T>(&field)),
        _ => Ok(value),
    }
}

fn malformed(error: &serde_json::Error) -> ApiError {
    ApiError::new(
        ErrorKind::BadRequest,
        format!("the body is not valid JSON: {error}"),
    )
}

fn wrong_field(error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let (path, cause) = (error.path().to_string(), error.inner());
    if !cause.is_data() {
        return malformed(cause);
    }
    let text = cause.to_string();
    // Where in the text it was adds nothing to its name.
    let text = text
        .split_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    let missing = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split_once('`'));
    let is_whole_body = path == ".";
    match missing {
        Some((name, _)) if is_whole_body => {
            ApiError::new(ErrorKind::Invalid, text).field(Some(name.to_owned()))
        }
        Some((name, _)) => ApiError::new(ErrorKind::Invalid, format!("{path}: {text}"))
            .field(Some(format!("{path}.{name}"))),
        None if is_whole_body => ApiError::new(ErrorKind::Invalid, text),
        None => ApiError::new(ErrorKind::Invalid, format!("{path}: {text}")).field(Some(path)),
    }
}

fn unknown_field<T: DeserializeOwned>(field: &str) -> ApiError {
    let mut names = FieldNames::default();
    // It fails after it has noted the names.
    let _ = T::deserialize(&mut names);
    let error = ApiError::new(ErrorKind::Invalid, format!("unknown field `{field}`"))
        .field(Some(field.to_owned()));
    match nearest(field, names.0.iter().copied()) {
        Some(name) => error.hint(format!("did you mean `{name}`?")),
        None if names.0.is_empty() || field.contains('.') => error,
        None => error.hint(format!("the fields are {}", names.0.join(", "))),
    }
}

/// Notes the names of a type's fields instead of reading it.
#[derive(Default)]
struct FieldNames(Vec<&'static str>);

impl<'de> Deserializer<'de> for &mut FieldNames {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue::custom(fmt::Error))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        self.0 = fields.to_vec();
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoValue> {
        visitor.visit_some(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;
    use crate::error::ErrorBody;

    #[derive(Debug, serde::Deserialize)]
    struct Request {
        memory_limit: Option<String>,
        #[serde(default)]
        files: Vec<File>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct File {
        #[expect(dead_code, reason = "only its name matters")]
        path: String,
    }

    fn refused(body: &str) -> ErrorBody {
        let error = read::<Request>(body.as_bytes(), false).unwrap_err();
        let response = error.into_response();
        response.extensions().get::<ErrorBody>().unwrap().clone()
    }

    #[test]
    fn refusals_name_the_field() {
        for (body, field, detail) in [
            (
                r#"{"memory_limit": 5}"#,
                Some("memory_limit"),
                "memory_limit: invalid type: integer `5`, expected a string",
            ),
            (
                r#"{"files": [{"path": "a"}, {}]}"#,
                Some("files[1].path"),
                "files[1]: missing field `path`",
            ),
            (
                r#"{"files": [{"path": "a", "mode": 1}]}"#,
                Some("files.0.mode"),
                "unknown field `files.0.mode`",
            ),
            (
                "5",
                None,
                "invalid type: integer `5`, expected struct Request",
            ),
            (
                "{",
                None,
                "the body is not valid JSON: EOF while parsing an object at line 1 column 1",
            ),
            (
                "{} {}",
                None,
                "the body is not valid JSON: trailing characters at line 1 column 4",
            ),
        ] {
            let error = refused(body);
            assert_eq!(
                (error.field.as_deref(), &*error.detail),
                (field, detail),
                "{body}"
            );
        }
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_likely_name() {
        let error = refused(r#"{"memory_limits": "1g"}"#);
        assert_eq!(error.field.as_deref(), Some("memory_limits"));
        assert_eq!(error.hint.as_deref(), Some("did you mean `memory_limit`?"));
        let error = refused(r#"{"colour": 1}"#);
        assert_eq!(
            error.hint.as_deref(),
            Some("the fields are memory_limit, files")
        );
    }

    #[test]
    fn unknown_fields_may_be_allowed() {
        let body = br#"{"later": {"x": [1]}, "memory_limit": "1g"}"#;
        let request = read::<Request>(body, true).unwrap();
        assert_eq!(request.memory_limit.as_deref(), Some("1g"));
        assert!(request.files.is_empty());
    }
}
