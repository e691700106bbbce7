//! Images fetched from a registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bollard::Docker as Daemon;
use bollard::query_parameters::CreateImageOptions;
use futures_util::future::{BoxFuture, Shared as Common};
use futures_util::{FutureExt, StreamExt};
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

use super::daemon::Shared;
use super::error::{DaemonResult, Fault, cut};
use super::image::{no_image, short};
use super::names::full_name;

/// How much longer an image is fetched than anybody waits for it.
const GOES_ON: u32 = 4;

/// What all who want an image wait for.
type Fetching = Common<BoxFuture<'static, Result<(), Arc<ProviderError>>>>;

/// The images that are being fetched, by their full names.
#[derive(Clone, Default)]
pub(super) struct Pulls(Arc<Mutex<HashMap<String, Fetching>>>);

impl Pulls {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Fetching>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches an image by what `fetch` does, or joins whoever does. It goes on when all who asked give up.
    fn join<F>(&self, image: &str, fetch: impl FnOnce() -> F) -> Fetching
    where
        F: Future<Output = DaemonResult> + Send + 'static,
    {
        let mut all = self.lock();
        // One that came to its end in another way than below does not stay.
        if let Some(one) = all.get(image).filter(|one| one.peek().is_none()) {
            return one.clone();
        }
        tracing::info!(image, "Fetching an image");
        let (pulls, name, work) = (self.clone(), image.to_owned(), fetch());
        let task = tokio::spawn(async move {
            let fetched = work.await;
            pulls.lock().remove(&name);
            fetched.map_err(|fault| Arc::new(fault.into_error(Verb::Create)))
        });
        let name = image.to_owned();
        let ended = move |error: tokio::task::JoinError| {
            let fault = not_fetched(&name, &error.to_string());
            Arc::new(fault.into_error(Verb::Create))
        };
        let fetching = task.map(move |done| done.unwrap_or_else(|error| Err(ended(error))));
        let fetching = fetching.boxed().shared();
        all.insert(image.to_owned(), fetching.clone());
        fetching
    }
}

impl Shared {
    /// Fetches an image. Goes on when whoever asked gives up, so that asking again finds it done.
    pub(super) async fn pull(&self, name: &str) -> DaemonResult {
        let most = self.config.timeouts.copy;
        let (daemon, image) = (self.daemon.clone(), full_name(name));
        let asked = name.to_owned();
        let fetching = self.pulls.join(&image.clone(), || async move {
            let pulled = tokio::time::timeout(most * GOES_ON, pull(&daemon, &image)).await;
            let pulled = pulled.unwrap_or_else(|_| Err(not_fetched(&asked, "it took too long")));
            pulled.map_err(|fault| explain(&asked, fault))
        });
        match tokio::time::timeout(most, fetching).await {
            Ok(fetched) => fetched.map_err(|error| Fault::Provider(error.duplicate())),
            Err(_) => Err(still_fetching(name)),
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
            tracing::debug!(image = name, "{}", cut(&status));
        }
    }
    Ok(())
}

/// Why an image was not fetched: only who has looked for it can say that it does not exist.
fn explain(name: &str, fault: Fault) -> Fault {
    let text = fault.text();
    let words = text.to_ascii_lowercase();
    let is_absent = [
        "not found",
        "manifest unknown",
        "does not exist",
        "no matching manifest",
    ];
    match fault {
        Fault::Provider(_) => fault,
        _ if fault.is_lost() => fault,
        _ if fault.is_absent() || is_absent.iter().any(|said| words.contains(said)) => {
            no_image(name, Some(&text))
        }
        _ => not_fetched(name, &text),
    }
}

/// The daemon is there, the registry is not: others may have the image. It counts as want of room, since Docker itself is well.
fn not_fetched(name: &str, why: &str) -> Fault {
    let short = short(name);
    let message = format!("the image `{short}` could not be fetched");
    let hint = format!("`docker pull {short}` must work on the daemon's host; the log tells more");
    tracing::warn!(image = name, "An image could not be fetched: {}", cut(why));
    let error = ProviderError::new(ProviderErrorKind::NoCapacity, message).source(cut(why));
    error.hint(Some(hint)).into()
}

/// Nobody waits any longer, and it goes on.
fn still_fetching(name: &str) -> Fault {
    let short = short(name);
    let message = format!("the image `{short}` is still being fetched");
    let hint = "try again in a while: it goes on, and who comes then finds it there";
    let error = ProviderError::new(ProviderErrorKind::NoCapacity, message);
    error.hint(Some(hint.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn all_who_want_an_image_wait_for_one_fetch_of_it() {
        let pulls = Pulls::default();
        let count = Arc::new(AtomicUsize::new(0));
        let go = Arc::new(tokio::sync::Semaphore::new(0));
        let fetch = |image: &str| {
            let (count, go) = (count.clone(), go.clone());
            pulls.join(image, || async move {
                count.fetch_add(1, Ordering::Relaxed);
                let _go = go.acquire().await;
                Err(not_fetched("debian", "no route"))
            })
        };
        let given_up = fetch("debian");
        drop(given_up);
        let all = [fetch("debian"), fetch("debian"), fetch("alpine")];
        go.add_permits(9);
        for one in all {
            let error = one.await.expect_err("no route");
            assert_eq!(error.kind, ProviderErrorKind::NoCapacity);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert!(pulls.lock().is_empty());
        let _ = fetch("debian").await;
        assert_eq!(count.load(Ordering::Relaxed), 3, "the next one tries again");
    }

    #[test]
    fn only_registries_say_that_there_is_no_image() {
        use bollard::errors::Error;
        let kind = |error: Error| {
            let fault = explain("debian", Fault::from(error));
            fault.into_error(sandyard_provider::Verb::Create).kind
        };
        let said = |status_code, message: &str| {
            kind(Error::DockerResponseServerError {
                status_code,
                message: message.to_owned(),
            })
        };
        let absent =
            "pull access denied for x, repository does not exist or may require 'docker login'";
        assert_eq!(said(404, absent), ProviderErrorKind::NotFound);
        let absent = "manifest for debian:x not found: manifest unknown";
        assert_eq!(said(500, absent), ProviderErrorKind::NotFound);
        for down in [
            "Get \"https://r.example/v2/\": dial tcp: lookup r.example: no such host",
            "toomanyrequests: You have reached your pull rate limit",
            "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
        ] {
            assert_eq!(said(500, down), ProviderErrorKind::NoCapacity, "{down}");
        }
        let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(kind(Error::from(lost)), ProviderErrorKind::Unavailable);
    }
}
