//! Pulls images from a registry.

use std::collections::HashMap;
use std::sync::Arc;

use bollard::Docker as Daemon;
use bollard::query_parameters::CreateImageOptions;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

use super::daemon::Shared;
use super::error::{DaemonResult, Fault, shorten};
use super::image::{no_image, shortened};
use super::names::full_name;

/// How much longer a pull may take than callers wait for it.
const PULL_TIMEOUT_FACTOR: u32 = 4;

/// All callers that need an image wait for this.
type SharedPull = SharedFuture<BoxFuture<'static, Result<(), Arc<ProviderError>>>>;

/// The pulls in progress, by full image names.
#[derive(Clone, Default)]
pub(super) struct Pulls(Arc<Mutex<HashMap<String, SharedPull>>>);

impl Pulls {
    /// Pulls an image with `fetch`, or joins the pull in progress. It continues when all callers give up.
    fn join<F>(&self, image: &str, fetch: impl FnOnce() -> F) -> SharedPull
    where
        F: Future<Output = DaemonResult> + Send + 'static,
    {
        let mut all = self.0.lock();
        // A pull that ended in another way than below is not reused.
        if let Some(existing) = all.get(image).filter(|existing| existing.peek().is_none()) {
            return existing.clone();
        }
        tracing::info!(image, "Pulling an image");
        let (pulls, name, work) = (self.clone(), image.to_owned(), fetch());
        let task = tokio::spawn(async move {
            let result = work.await;
            pulls.0.lock().remove(&name);
            result.map_err(|fault| Arc::new(fault.into_error(Verb::Create)))
        });
        let name = image.to_owned();
        let interrupted = move |error: tokio::task::JoinError| {
            let fault = pull_failed(&name, &error.to_string());
            Arc::new(fault.into_error(Verb::Create))
        };
        let pulling = task.map(move |done| done.unwrap_or_else(|error| Err(interrupted(error))));
        let pulling = pulling.boxed().shared();
        all.insert(image.to_owned(), pulling.clone());
        pulling
    }
}

impl Shared {
    /// Pulls an image. The pull continues when the caller gives up, so that a later call finds the image.
    pub(super) async fn pull(&self, name: &str) -> DaemonResult {
        let timeout = self.config.timeouts.copy;
        let (daemon, image) = (self.daemon.clone(), full_name(name));
        let image_name = name.to_owned();
        let pulling = self.pulls.join(&image.clone(), || async move {
            let pulled =
                tokio::time::timeout(timeout * PULL_TIMEOUT_FACTOR, pull(&daemon, &image)).await;
            let pulled =
                pulled.unwrap_or_else(|_| Err(pull_failed(&image_name, "it took too long")));
            pulled.map_err(|fault| explain(&image_name, fault))
        });
        match tokio::time::timeout(timeout, pulling).await {
            Ok(result) => result.map_err(|error| Fault::Provider(error.duplicate())),
            Err(_) => Err(pull_in_progress(name)),
        }
    }
}

async fn pull(daemon: &Daemon, name: &str) -> DaemonResult {
    let options = CreateImageOptions {
        from_image: Some(name.to_owned()),
        ..CreateImageOptions::default()
    };
    let mut steps = Box::pin(daemon.create_image(Some(options), None, None));
    while let Some(step) = steps.next().await {
        if let Some(status) = step?.status {
            tracing::debug!(image = name, "{}", shorten(&status));
        }
    }
    Ok(())
}

/// The error of a failed pull. Only an answer of the registry proves that an image does not exist.
fn explain(name: &str, fault: Fault) -> Fault {
    let text = fault.text();
    let lowercase = text.to_ascii_lowercase();
    let is_absent = [
        "not found",
        "manifest unknown",
        "does not exist",
        "no matching manifest",
    ];
    match fault {
        Fault::Provider(_) => fault,
        _ if fault.is_lost() => fault,
        _ if fault.is_not_found()
            || is_absent.iter().any(|pattern| lowercase.contains(pattern)) =>
        {
            no_image(name, Some(&text))
        }
        _ => pull_failed(name, &text),
    }
}

/// The registry does not answer, but another provider may have the image. Docker itself works, so the kind is `NoCapacity`.
fn pull_failed(name: &str, reason: &str) -> Fault {
    let shortened = shortened(name);
    let message = format!("the image `{shortened}` could not be pulled");
    let hint = format!("`docker pull {shortened}` must work on the daemon's host; see the log");
    tracing::warn!(image = name, "Failed to pull an image: {}", shorten(reason));
    let error = ProviderError::new(ProviderErrorKind::NoCapacity, message).source(shorten(reason));
    error.hint(Some(hint)).into()
}

/// The caller's timeout is over, and the pull continues.
fn pull_in_progress(name: &str) -> Fault {
    let shortened = shortened(name);
    let message = format!("the image `{shortened}` is still being pulled");
    let hint = "try again later: the pull continues";
    let error = ProviderError::new(ProviderErrorKind::NoCapacity, message);
    error.hint(Some(hint.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn callers_of_the_same_image_share_one_pull() {
        let pulls = Pulls::default();
        let count = Arc::new(AtomicUsize::new(0));
        let go = Arc::new(tokio::sync::Semaphore::new(0));
        let fetch = |image: &str| {
            let (count, go) = (count.clone(), go.clone());
            pulls.join(image, || async move {
                count.fetch_add(1, Ordering::Relaxed);
                let _go = go.acquire().await;
                Err(pull_failed("debian", "no route"))
            })
        };
        let abandoned = fetch("debian");
        drop(abandoned);
        let all = [fetch("debian"), fetch("debian"), fetch("alpine")];
        go.add_permits(9);
        for pull in all {
            let error = pull.await.expect_err("no route");
            assert_eq!(error.kind, ProviderErrorKind::NoCapacity);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert!(pulls.0.lock().is_empty());
        let _ = fetch("debian").await;
        assert_eq!(count.load(Ordering::Relaxed), 3, "a later call tries again");
    }

    #[test]
    fn only_an_answer_of_the_registry_means_that_an_image_does_not_exist() {
        use bollard::errors::Error;
        let kind = |error: Error| {
            let fault = explain("debian", Fault::from(error));
            fault.into_error(sandyard_provider::Verb::Create).kind
        };
        let kind_of = |status_code, message: &str| {
            kind(Error::DockerResponseServerError {
                status_code,
                message: message.to_owned(),
            })
        };
        let absent =
            "pull access denied for x, repository does not exist or may require 'docker login'";
        assert_eq!(kind_of(404, absent), ProviderErrorKind::NotFound);
        let absent = "manifest for debian:x not found: manifest unknown";
        assert_eq!(kind_of(500, absent), ProviderErrorKind::NotFound);
        for down in [
            "Get \"https://r.example/v2/\": dial tcp: lookup r.example: no such host",
            "toomanyrequests: You have reached your pull rate limit",
            "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
        ] {
            assert_eq!(kind_of(500, down), ProviderErrorKind::NoCapacity, "{down}");
        }
        let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(kind(Error::from(lost)), ProviderErrorKind::Unavailable);
    }
}
