//! What counts as no answer, and what is said instead of one.

use std::time::Duration;

use crate::layers::layered::Call;
use crate::layers::never_asked::NeverAsked;
use crate::{ProviderError, ProviderErrorKind, Retry};

/// Says whether a failure means that nobody answered. All others are answers: who says that it must not be asked, or when to come
/// again, is there.
pub(super) fn is_silence(error: &ProviderError) -> bool {
    let is_quiet = matches!(
        error.kind,
        ProviderErrorKind::Unavailable | ProviderErrorKind::TimedOut
    );
    is_quiet && error.retry == Retry::Later && error.retry_after.is_none()
}

/// What is said to whoever asks meanwhile.
pub(super) fn refusal(call: &Call<'_>, silent: Duration, wait: Duration) -> ProviderError {
    let (provider, seconds) = (call.provider, silent.as_secs());
    let next = match wait.as_secs_f64().ceil() {
        0.0 => "it is being tried again now".to_owned(),
        seconds => format!("it is tried again in {seconds} s"),
    };
    let message = format!("provider `{provider}` has not answered for {seconds} s; {next}");
    let refusal = ProviderError::new(ProviderErrorKind::Unavailable, message);
    refusal.retry_after(wait).source(NeverAsked)
}
