//! Creates a sandbox, exactly once even if the answer is lost.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use sandyard_core::Clock;
use sandyard_provider::{
    Instance, InstanceSpec, ProviderError, ProviderErrorKind, Result, Retry, Verb,
};

use super::api::NO_BODY;
use super::model::{Network, NewSandbox, Sandbox};
use super::{E2b, convert, network};
use crate::maybe_created::maybe_created;
use crate::requested_limits;

/// Maximum number of metadata bytes of a sandbox: in one name, in one value, in total.
const MAX_NAME: usize = 256;
const MAX_VALUE: usize = 2048;
const MAX_METADATA: usize = 8192;
/// Maximum number of attempts of a request about a new sandbox.
const MAX_ATTEMPTS: usize = 4;
/// Pause before the second attempt; each later pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// When the API names a longer pause, the request is not repeated.
const MAX_PAUSE: Duration = Duration::from_secs(5);

impl E2b {
    /// The name of the next call that creates something.
    pub(super) fn attempt(&self) -> String {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        format!("{}-{}-{number}", std::process::id(), self.since_ms)
    }

    /// Creates a sandbox from `source`; `template` is its name for users.
    pub(super) async fn create_sandbox(
        &self,
        verb: Verb,
        spec: &InstanceSpec,
        source: &str,
        template: &str,
    ) -> Result<Instance> {
        let attempt = self.attempt();
        let created = Clock::System.now_ms().to_string();
        let mut metadata = fitting_metadata(&spec.metadata);
        // The server's labels replace metadata of the same name.
        metadata.extend([
            (convert::SANDBOX, spec.sandbox_id.as_str()),
            (convert::INSTALLATION, self.installation.as_str()),
            (convert::ATTEMPT, attempt.as_str()),
            (convert::TEMPLATE, template),
            (convert::CREATED, created.as_str()),
        ]);
        let limits = requested_limits::encode_unusual(&spec.limits, &self.info.default_limits);
        // A fork has the limits of its source.
        if verb == Verb::Create {
            metadata.insert(convert::REQUESTED_LIMITS, &limits);
        }
        let send = |timeout| {
            let (network, _) = network::network(&spec.network);
            let request = NewSandbox {
                template_id: source,
                timeout,
                auto_pause: true,
                secure: true,
                allow_internet_access: spec.network.allow_internet_access,
                network: Network {
                    allow_public_traffic: Some(false),
                    ..network
                },
                metadata: metadata.clone(),
                env_vars: &spec.env,
            };
            async move {
                let path = ["sandboxes"];
                let answer = self.api.ask(verb, Method::POST, &path, Some(&request));
                answer.await?.read::<Sandbox>()
            }
        };
        let sandbox = match self.api.with_timeout(send).await {
            Err(error) if may_exist(&error) => self.find_created(verb, &attempt, error).await?,
            other => other?,
        };
        if !convert::is_id(&sandbox.sandbox_id) {
            let message = "E2B created a sandbox with an invalid id";
            return Err(ProviderError::new(ProviderErrorKind::Failed, message));
        }
        self.cache.record(&sandbox);
        let id = &sandbox.sandbox_id;
        match with_retries(|| self.inspect_created(id)).await {
            Ok(instance) => Ok(instance),
            Err(error) => Err(self.delete_failed(id, error).await),
        }
    }

    /// Inspects a new sandbox: the answer to the create does not contain everything.
    async fn inspect_created(&self, id: &str) -> Result<Instance> {
        let found = self.find(Verb::Inspect, id).await?;
        // One of E2B's servers may not know yet what another one reports.
        let found = found.ok_or_else(|| {
            let message = "E2B does not know the sandbox that it created";
            ProviderError::new(ProviderErrorKind::Unavailable, message)
        })?;
        Ok(self.instance(&found))
    }

    /// Deletes a sandbox whose create failed: nothing would know of it, and it costs. Returns the error to report.
    async fn delete_failed(&self, id: &str, error: ProviderError) -> ProviderError {
        let path = ["sandboxes", id];
        let delete = || self.api.ask(Verb::Delete, Method::DELETE, &path, NO_BODY);
        match with_retries(delete).await {
            Err(failure) if failure.kind != ProviderErrorKind::NotFound => {
                tracing::warn!(error = %failure, instance = id, "Failed to delete a sandbox at E2B whose create failed");
                maybe_created(error)
            }
            _ => {
                self.cache.forget(id);
                error
            }
        }
    }

    /// Finds the sandbox that a call created although its answer was lost; if there is none, returns the call's error.
    async fn find_created(
        &self,
        verb: Verb,
        attempt: &str,
        error: ProviderError,
    ) -> Result<Sandbox> {
        tracing::warn!(%error, "Lost E2B's answer to a create; searching for the sandbox");
        let found = self.api.with_label(verb, convert::ATTEMPT, attempt).await;
        match found {
            Ok((found, _)) => found.into_iter().next().ok_or(error),
            Err(_) => Err(maybe_created(error)),
        }
    }
}

/// Repeats a request that is safe to repeat a few times while its errors are temporary.
async fn with_retries<T, F>(send: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..MAX_ATTEMPTS {
        match send().await {
            Err(error) if is_temporary(&error) => {
                tokio::time::sleep(error.retry_after.unwrap_or(pause)).await;
            }
            other => return other,
        }
        pause *= 2;
    }
    send().await
}

/// Whether another attempt may succeed soon. A timeout was long enough already.
fn is_temporary(error: &ProviderError) -> bool {
    let is_soon = error.retry_after.is_none_or(|wait| wait <= MAX_PAUSE);
    let is_temporary_kind = matches!(
        error.kind,
        ProviderErrorKind::NoCapacity | ProviderErrorKind::Unavailable
    );
    error.retry == Retry::Later && is_temporary_kind && is_soon
}

/// The user's metadata that is stored at E2B, up to a total size: every list contains all of it, a hundred times per page, and
/// callers wait for lists.
fn fitting_metadata(metadata: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let mut remaining = MAX_METADATA;
    let is_accepted = |name: &String, value: &String| {
        let is_printable = !name.is_empty() && !name.contains(char::is_control);
        let is_free = !name.starts_with(convert::PREFIX);
        let is_short = name.len() <= MAX_NAME && value.len() <= MAX_VALUE;
        is_printable && is_free && is_short
    };
    let mut selected = BTreeMap::new();
    for (name, value) in metadata {
        let size = name.len() + value.len();
        if is_accepted(name, value) && size <= remaining {
            remaining -= size;
            selected.insert(name.as_str(), value.as_str());
        }
    }
    if selected.len() < metadata.len() {
        let dropped = metadata.len() - selected.len();
        tracing::debug!(dropped, "Not all metadata of a sandbox is stored at E2B");
    }
    selected
}

/// Whether the sandbox may exist nevertheless.
fn may_exist(error: &ProviderError) -> bool {
    let is_lost = matches!(
        error.kind,
        ProviderErrorKind::TimedOut | ProviderErrorKind::Unavailable | ProviderErrorKind::Failed
    );
    // A server that names a time to retry after has created nothing.
    let is_rejected = error.retry_after.is_some();
    is_lost && !is_rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_stored_up_to_a_size_and_never_replaces_the_servers() {
        let map_of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect()
        };
        let long = "x".repeat(MAX_VALUE + 1);
        let all = map_of(&[
            ("team", "blue"),
            ("sandyard.installation", "another"),
            ("", "nameless"),
            ("two\nlines", "x"),
            ("long", &long),
        ]);
        assert_eq!(fitting_metadata(&all), BTreeMap::from([("team", "blue")]));
        let many: BTreeMap<_, _> = (0..100)
            .map(|number| (format!("name{number:03}"), "x".repeat(1000)))
            .collect();
        let selected = fitting_metadata(&many);
        assert_eq!(selected.len(), 8);
        let size = selected
            .iter()
            .map(|(name, value)| name.len() + value.len());
        assert!(size.sum::<usize>() <= MAX_METADATA);
    }
}
