//! Sends requests and parses responses.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::client::Client;
use crate::error::{ApiError, ClientError};

/// Time limit of requests that do no long work.
const SHORT_LIMIT: Duration = Duration::from_secs(120);
/// Largest error body that is read, in bytes.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Time limit of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeLimit {
    /// Two minutes, for operations that do no long work.
    Short,
    /// Unlimited, for operations that may take any time.
    Unlimited,
}

impl Client {
    /// Creates a request to a route.
    pub(crate) fn request<'a>(
        &self,
        method: Method,
        segments: impl IntoIterator<Item = &'a str>,
    ) -> RequestBuilder {
        self.http().request(method, self.route(segments))
    }

    /// Sends a request. A response other than success becomes an error that carries the whole response.
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        limit: TimeLimit,
        request: RequestBuilder,
    ) -> Result<Response> {
        let request = match limit {
            TimeLimit::Short => request.timeout(SHORT_LIMIT),
            TimeLimit::Unlimited => request,
        };
        let response = request
            .send()
            .await
            .map_err(|error| self.failed(operation, error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.error_response(operation, response).await)
    }

    /// Sends a request whose response is JSON.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        limit: TimeLimit,
        request: RequestBuilder,
    ) -> Result<T> {
        let response = self.send(operation, limit, request).await?;
        let body = response
            .bytes()
            .await
            .map_err(|error| self.failed(operation, error))?;
        serde_json::from_slice(&body).map_err(|error| ClientError::Protocol {
            operation,
            problem: error.to_string(),
        })
    }

    /// Gets JSON from a route.
    pub(crate) async fn get<'a, T: DeserializeOwned>(
        &self,
        operation: &'static str,
        segments: impl IntoIterator<Item = &'a str>,
    ) -> Result<T> {
        let request = self.request(Method::GET, segments);
        self.fetch(operation, TimeLimit::Short, request).await
    }

    /// Posts JSON to a route and reads JSON back.
    pub(crate) async fn post<'a, T: DeserializeOwned>(
        &self,
        operation: &'static str,
        segments: impl IntoIterator<Item = &'a str>,
        body: &impl Serialize,
    ) -> Result<T> {
        let request = self.request(Method::POST, segments).json(body);
        self.fetch(operation, TimeLimit::Short, request).await
    }

    /// Converts an error of the HTTP library.
    pub(crate) fn failed(&self, operation: &'static str, error: reqwest::Error) -> ClientError {
        // The error names the address already.
        let is_connect = error.is_connect();
        let source = Box::new(error.without_url());
        if is_connect {
            ClientError::not_connected(self.url(), source)
        } else {
            let wrong_scheme = ClientError::wrong_scheme(self.url(), &*source);
            wrong_scheme.unwrap_or(ClientError::Connection { operation, source })
        }
    }

    async fn error_response(&self, operation: &'static str, mut response: Response) -> ClientError {
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() < MAX_ERROR_BYTES => body.extend_from_slice(&chunk),
                Ok(_) => break,
                // A truncated error message is better than none.
                Err(_) if !body.is_empty() => break,
                Err(error) => return self.failed(operation, error),
            }
        }
        ClientError::Api(Box::new(ApiError::from_body(status, retry_after, &body)))
    }
}
