//! Bodies, queries and paths, with refusals in our own words.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use sandyard_core::ErrorKind;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// A JSON body. Unreadable JSON is 400; a missing or wrong field is 422 and named.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        use axum::extract::rejection::JsonRejection;
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(body)) => Ok(Self(body)),
            Err(JsonRejection::JsonDataError(error)) => {
                Err(ApiError::new(ErrorKind::Invalid, error.body_text()))
            }
            Err(JsonRejection::MissingJsonContentType(_)) => Err(ApiError::new(
                ErrorKind::Invalid,
                "the body must be JSON: send `Content-Type: application/json`",
            )),
            Err(JsonRejection::BytesRejection(error)) => Err(ApiError::new(
                ErrorKind::TooLarge,
                format!("the body cannot be taken: {}", error.body_text()),
            )),
            Err(error) => Err(ApiError::new(ErrorKind::BadRequest, error.body_text())),
        }
    }
}

/// A query string; a wrong value is 422.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| ApiError::new(ErrorKind::Invalid, error.body_text()))
    }
}
