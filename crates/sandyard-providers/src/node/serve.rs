//! The answering half: one call for another server of the installation. The caller has checked its token.

use bytes::Bytes;
use http::StatusCode;
use sandyard_provider::{
    Answer, ArchiveReader, Call, Provider, ProviderError, ProviderErrorKind, Result, Verb,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::FAILED;

/// The name of the request for a provider's info, which is no call but the first thing another server needs.
pub const INFO: &str = "info";

/// Answers one call: the last segment of its path, and its body.
pub async fn serve_verb(provider: &dyn Provider, verb: &str, body: Bytes) -> (StatusCode, Bytes) {
    let done = match (verb, verb.parse()) {
        (INFO, _) => to_json(provider.info()),
        (_, Ok(verb)) => serve_call(provider, verb, &body).await,
        (_, Err(error)) => {
            let unknown = ProviderErrorKind::Unsupported;
            Err(ProviderError::new(unknown, "there is no such call").source(error))
        }
    };
    respond(done)
}

/// Answers an import, whose body is the archive itself.
pub async fn serve_import(
    provider: &dyn Provider,
    name: &str,
    archive: ArchiveReader,
) -> (StatusCode, Bytes) {
    let imported = provider.import_template(name, archive).await;
    respond(imported.and_then(|template| to_json(&template)))
}

fn respond(done: Result<Bytes>) -> (StatusCode, Bytes) {
    done.map_or_else(refusal, |json| (StatusCode::OK, json))
}

/// The response of a failed call. The error's source stays here, in the log.
pub fn refusal(error: ProviderError) -> (StatusCode, Bytes) {
    if let Some(source) = &error.source {
        tracing::warn!(
            error = source.as_ref() as &dyn std::error::Error,
            "Failed a call of another node: {error}"
        );
    }
    let json = serde_json::to_vec(&error).expect("an error holds strings and numbers");
    (FAILED, json.into())
}

async fn serve_call(provider: &dyn Provider, verb: Verb, body: &[u8]) -> Result<Bytes> {
    match parse(verb, body)?.send_to(provider).await? {
        // The caller opens a tunnel to it.
        Answer::Agent(_) => to_json(&()),
        answer => to_json(&answer),
    }
}

/// Reads a call. Its arguments may be secret: the error does not quote them.
fn parse(verb: Verb, body: &[u8]) -> Result<Call<'static>> {
    // An agent is reached by a tunnel, an archive is a stream, and the service looks up what a sandbox may reach.
    if matches!(verb, Verb::Agent | Verb::ImportTemplate | Verb::SetNetwork) {
        let message = format!("`{verb}` is not called with a JSON body");
        return Err(ProviderError::new(ProviderErrorKind::Unsupported, message));
    }
    let arguments = serde_json::from_slice::<Map<String, Value>>(body).map(|mut arguments| {
        arguments.insert("verb".to_owned(), verb.as_str().into());
        Value::Object(arguments)
    });
    arguments.and_then(serde_json::from_value).map_err(|_| {
        let message = format!("the request body does not hold the arguments of `{verb}`");
        ProviderError::new(ProviderErrorKind::Invalid, message)
    })
}

fn to_json(value: &impl Serialize) -> Result<Bytes> {
    let json = serde_json::to_vec(value);
    json.map(Bytes::from).map_err(|error| {
        let message = "failed to write the answer as JSON";
        ProviderError::new(ProviderErrorKind::Failed, message).source(error)
    })
}
