//! The answering half: one call for another server of the installation, whose token has been checked already.

use bytes::Bytes;
use http::StatusCode;
use sandyard_provider::{
    ArchiveReader, InstanceSpec, Provider, ProviderError, ProviderErrorKind, Result, Verb,
    VolumeSpec,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::convert::{
    ById, ByName, ForkRequest, KeepReadyRequest, SnapshotRequest, UsageHistoryRequest,
};
use super::error::FAILED;

/// Asks who the provider is; no call of the contract, but the first thing another server needs.
pub const INFO: &str = "info";

/// Answers one call: the last piece of its path, and its body.
pub async fn serve_verb(provider: &dyn Provider, verb: &str, body: Bytes) -> (StatusCode, Bytes) {
    let done = match (verb, verb.parse()) {
        (INFO, _) => answer(provider.info()),
        (_, Ok(verb)) => call(provider, verb, &body).await,
        (_, Err(error)) => {
            let unknown = ProviderErrorKind::Unsupported;
            Err(ProviderError::new(unknown, "there is no such call").source(error))
        }
    };
    match done {
        Ok(json) => (StatusCode::OK, json),
        Err(error) => refusal(error),
    }
}

/// Answers an import, whose body is the archive itself.
pub async fn serve_import(
    provider: &dyn Provider,
    name: &str,
    archive: ArchiveReader,
) -> (StatusCode, Bytes) {
    let imported = provider.import_template(name, archive).await;
    match imported.and_then(|template| answer(&template)) {
        Ok(json) => (StatusCode::OK, json),
        Err(error) => refusal(error),
    }
}

/// Puts a failure into an answer. Its cause stays here, in the log.
pub fn refusal(error: ProviderError) -> (StatusCode, Bytes) {
    if let Some(source) = &error.source {
        tracing::warn!(
            error = source.as_ref() as &dyn std::error::Error,
            "Failed a call of another node: {error}"
        );
    }
    let json = serde_json::to_vec(&error).expect("an error is plain text and words");
    (FAILED, json.into())
}

async fn call(provider: &dyn Provider, verb: Verb, body: &[u8]) -> Result<Bytes> {
    match verb {
        Verb::CheckHealth => answer(&provider.check_health().await?),
        Verb::Create => answer(&provider.create(&read::<InstanceSpec>(verb, body)?).await?),
        Verb::Inspect => answer(&provider.inspect(&id(verb, body)?).await?),
        Verb::List => answer(&provider.list().await?),
        Verb::Pause => answer(&provider.pause(&id(verb, body)?).await?),
        Verb::Resume => answer(&provider.resume(&id(verb, body)?).await?),
        Verb::Stop => answer(&provider.stop(&id(verb, body)?).await?),
        Verb::Start => answer(&provider.start(&id(verb, body)?).await?),
        Verb::Delete => answer(&provider.delete(&id(verb, body)?).await?),
        Verb::Snapshot => {
            let asked: SnapshotRequest<'_> = read(verb, body)?;
            answer(&provider.snapshot(&asked.id, &asked.name).await?)
        }
        Verb::Fork => {
            let asked: ForkRequest<'_> = read(verb, body)?;
            answer(&provider.fork(&asked.id, &asked.spec).await?)
        }
        Verb::Diff => answer(&provider.diff(&id(verb, body)?).await?),
        Verb::Usage => answer(&provider.usage(&id(verb, body)?).await?),
        Verb::UsageHistory => {
            let asked: UsageHistoryRequest<'_> = read(verb, body)?;
            let (from_ms, to_ms) = (asked.from_ms, asked.to_ms);
            answer(&provider.usage_history(&asked.id, from_ms, to_ms).await?)
        }
        Verb::Templates => answer(&provider.templates().await?),
        Verb::RemoveTemplate => {
            let asked: ByName<'_> = read(verb, body)?;
            answer(&provider.remove_template(&asked.name).await?)
        }
        Verb::CreateVolume => {
            let asked: VolumeSpec = read(verb, body)?;
            answer(&provider.create_volume(&asked).await?)
        }
        Verb::DeleteVolume => answer(&provider.delete_volume(&id(verb, body)?).await?),
        // The files themselves go through a tunnel.
        Verb::OpenVolume => answer(&provider.open_volume(&id(verb, body)?).await.map(drop)?),
        Verb::KeepReady => {
            let asked: KeepReadyRequest = read(verb, body)?;
            answer(&provider.keep_ready(&asked.wanted).await?)
        }
        // An agent is reached by a tunnel, an archive comes as a stream, and what a sandbox may reach is the service's to say.
        _ => Err(ProviderError::new(
            ProviderErrorKind::Unsupported,
            format!("`{verb}` is not asked this way"),
        )),
    }
}

fn id(verb: Verb, body: &[u8]) -> Result<String> {
    Ok(read::<ById<'_>>(verb, body)?.id.into_owned())
}

/// Reads a request. What it holds may be secret: the failure does not quote it.
fn read<T: DeserializeOwned>(verb: Verb, body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|_| {
        ProviderError::new(
            ProviderErrorKind::Invalid,
            format!("that is not what `{verb}` takes"),
        )
    })
}

fn answer(done: &impl Serialize) -> Result<Bytes> {
    let json = serde_json::to_vec(done);
    json.map(Bytes::from).map_err(|error| {
        let message = "the answer could not be put into words";
        ProviderError::new(ProviderErrorKind::Failed, message).source(error)
    })
}
