//! Which errors mean that the provider did not answer, and the error of a call that the breaker rejects.

use std::time::Duration;

use crate::layers::layer::Request;
use crate::layers::rejected_locally::RejectedLocally;
use crate::{ProviderError, ProviderErrorKind, Retry};

/// Whether an error means that the provider did not answer. All other errors are answers, also one that forbids the call or
/// names a time to retry after.
pub(super) fn is_unanswered(error: &ProviderError) -> bool {
    let is_silent = matches!(
        error.kind,
        ProviderErrorKind::Unavailable | ProviderErrorKind::TimedOut
    );
    is_silent && error.retry == Retry::Later && error.retry_after.is_none()
}

/// The error of a call while the breaker is open.
pub(super) fn rejection(request: &Request<'_>, silent: Duration, wait: Duration) -> ProviderError {
    let (provider, seconds) = (request.provider(), silent.as_secs());
    let next = match wait.as_secs_f64().ceil() {
        0.0 => "it is being tried again now".to_owned(),
        seconds => format!("it is tried again in {seconds} s"),
    };
    let message = format!("provider `{provider}` has not answered for {seconds} s; {next}");
    let rejection = ProviderError::new(ProviderErrorKind::Unavailable, message);
    rejection.retry_after(wait).source(RejectedLocally)
}
