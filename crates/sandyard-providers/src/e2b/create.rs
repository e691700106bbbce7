//! Making a sandbox: once, whatever happens to the answer.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use sandyard_core::Clock;
use sandyard_provider::{
    Instance, InstanceSpec, ProviderError, ProviderErrorKind, Result, Retry, Verb,
};

use super::api::NOTHING;
use super::model::{Network, NewSandbox, Sandbox};
use super::{E2b, convert, network};
use crate::maybe_created::maybe_created;
use crate::requested_limits;

/// Bytes of its maker's words that go onto a sandbox: of one name, of one value, of all.
const MAX_NAME: usize = 256;
const MAX_VALUE: usize = 2048;
const MAX_WORDS: usize = 8192;
/// How often something about what was made is asked at most.
const TRIES: usize = 4;
/// The pause before the second time; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Whoever says to wait longer than this is not asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl E2b {
    /// The name of the next call that makes something.
    pub(super) fn attempt(&self) -> String {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        format!("{}-{}-{number}", std::process::id(), self.since_ms)
    }

    /// Makes a sandbox from `source`, which we call `template`.
    pub(super) async fn make(
        &self,
        verb: Verb,
        spec: &InstanceSpec,
        source: &str,
        template: &str,
    ) -> Result<Instance> {
        let attempt = self.attempt();
        let created = Clock::System.now_ms().to_string();
        let mut metadata = words(&spec.metadata);
        // Whatever its maker says: these are ours.
        metadata.extend([
            (convert::SANDBOX, spec.sandbox_id.as_str()),
            (convert::INSTALLATION, self.installation.as_str()),
            (convert::ATTEMPT, attempt.as_str()),
            (convert::TEMPLATE, template),
            (convert::CREATED, created.as_str()),
        ]);
        let limits = requested_limits::encode_unusual(&spec.limits, &self.info.default_limits);
        // A copy has what its original has, whatever its maker says.
        if verb == Verb::Create {
            metadata.insert(convert::ASKED, &limits);
        }
        let ask = async || {
            let (network, _) = network::network(&spec.network);
            let wanted = NewSandbox {
                template_id: source,
                timeout: self.api.timeout(),
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
            let asked = self
                .api
                .ask(verb, Method::POST, &["sandboxes"], Some(&wanted))
                .await;
            asked?.read::<Sandbox>()
        };
        let mut made = ask().await;
        if let Err(error) = &made
            && self.api.shorten(error)
        {
            made = ask().await;
        }
        let made = match made {
            Err(error) if may_be_made(&error) => self.find(verb, &attempt, error).await?,
            other => other?,
        };
        if !convert::is_id(&made.sandbox_id) {
            let message = "E2B made a sandbox whose id is none";
            return Err(ProviderError::new(ProviderErrorKind::Failed, message));
        }
        self.known.note(&made);
        let id = &made.sandbox_id;
        match again(|| self.made(id)).await {
            Ok(instance) => Ok(instance),
            Err(error) => Err(self.take_back(id, error).await),
        }
    }

    /// What was made. Not all of it is in the answer to whoever makes it.
    async fn made(&self, id: &str) -> Result<Instance> {
        let found = self.look(Verb::Inspect, id).await?;
        // What is told by one of their servers may be news to another.
        let found = found.ok_or_else(|| {
            let message = "E2B does not know the sandbox that it has made";
            ProviderError::new(ProviderErrorKind::Unavailable, message)
        })?;
        Ok(self.instance(&found))
    }

    /// Deletes what was made and cannot be told of: nobody would know of it, and it costs. Says what is to be said then.
    async fn take_back(&self, id: &str, error: ProviderError) -> ProviderError {
        let path = ["sandboxes", id];
        let delete = || self.api.ask(Verb::Delete, Method::DELETE, &path, NOTHING);
        match again(delete).await {
            Err(left) if left.kind != ProviderErrorKind::NotFound => {
                tracing::warn!(error = %left, instance = id, "A sandbox at E2B that failed is left");
                maybe_created(error)
            }
            _ => {
                self.known.forget(id);
                error
            }
        }
    }

    /// Finds what exactly this call has made though its answer got lost; nothing: it failed as it did.
    async fn find(&self, verb: Verb, attempt: &str, error: ProviderError) -> Result<Sandbox> {
        tracing::warn!(%error, "An answer of E2B got lost; looking for what it was about");
        let found = self.api.marked(verb, convert::ATTEMPT, attempt).await;
        match found {
            Ok((found, _)) => found.into_iter().next().ok_or(error),
            Err(_) => Err(maybe_created(error)),
        }
    }
}

/// Asks a few times for what may pass, where a second time does no harm.
async fn again<T, F>(ask: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match ask().await {
            Err(error) if may_pass(&error) => {
                tokio::time::sleep(error.retry_after.unwrap_or(pause)).await;
            }
            other => return other,
        }
        pause *= 2;
    }
    ask().await
}

/// Says whether it is worth while to ask again soon. What took too long has been waited for already.
fn may_pass(error: &ProviderError) -> bool {
    let is_soon = error.retry_after.is_none_or(|wait| wait <= LONGEST_PAUSE);
    let is_brief = matches!(
        error.kind,
        ProviderErrorKind::NoCapacity | ProviderErrorKind::Unavailable
    );
    error.retry == Retry::Later && is_brief && is_soon
}

/// The words of its maker that go onto a sandbox there, as far as there is room: all of them come with every list, a hundred times
/// on each page, and whoever wants a list waits for it.
fn words(metadata: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let mut room = MAX_WORDS;
    let fits = |name: &String, value: &String| {
        let is_plain = !name.is_empty() && !name.contains(char::is_control);
        let is_free = !name.starts_with(convert::OURS);
        let is_short = name.len() <= MAX_NAME && value.len() <= MAX_VALUE;
        is_plain && is_free && is_short
    };
    let mut words = BTreeMap::new();
    for (name, value) in metadata {
        let size = name.len() + value.len();
        if fits(name, value) && size <= room {
            room -= size;
            words.insert(name.as_str(), value.as_str());
        }
    }
    if words.len() < metadata.len() {
        let left = metadata.len() - words.len();
        tracing::debug!(left, "Not all metadata of a sandbox goes to E2B");
    }
    words
}

/// Says whether a sandbox may have been made all the same.
fn may_be_made(error: &ProviderError) -> bool {
    let is_lost = matches!(
        error.kind,
        ProviderErrorKind::TimedOut | ProviderErrorKind::Unavailable | ProviderErrorKind::Failed
    );
    // Who asks to be asked later has made nothing.
    let is_answered = error.retry_after.is_some();
    is_lost && !is_answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_on_as_far_as_they_fit_and_never_stand_for_ours() {
        let told = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect()
        };
        let long = "x".repeat(MAX_VALUE + 1);
        let all = told(&[
            ("team", "blue"),
            ("sandyard.installation", "another"),
            ("", "nameless"),
            ("odd\nname", "x"),
            ("long", &long),
        ]);
        assert_eq!(words(&all), BTreeMap::from([("team", "blue")]));
        let many: BTreeMap<_, _> = (0..100)
            .map(|number| (format!("name{number:03}"), "x".repeat(1000)))
            .collect();
        let kept = words(&many);
        assert_eq!(kept.len(), 8);
        let size = kept.iter().map(|(name, value)| name.len() + value.len());
        assert!(size.sum::<usize>() <= MAX_WORDS);
    }
}
