//! Answers in JSON are accounted for until they are sent: a client that reads slowly keeps them in memory.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use sandyard_service::{MEMORY_WAIT, MemoryBudget, MemoryHold, UNCOUNTED_BYTES};

use crate::error::ApiError;
use crate::extract::media_type;

/// Says that an answer accounts for itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfAccounted;

/// Lets a large answer go out once there is memory for it.
pub(crate) async fn account(budget: &MemoryBudget, caller: &str, response: Response) -> Response {
    let length = response.body().size_hint().exact().unwrap_or(0);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let is_streamed = media_type(response.headers()) != "application/json";
    let is_accounted = response.extensions().get::<SelfAccounted>().is_some();
    if length <= UNCOUNTED_BYTES || is_streamed || is_accounted {
        return response;
    }
    let memory = budget.hold(caller);
    if let Err(shortage) = memory.grow(length, MEMORY_WAIT).await {
        return ApiError::from(shortage).into_response();
    }
    response.map(|body| {
        Body::new(AccountedBody {
            body,
            _memory: memory,
        })
    })
}

/// A body that holds memory.
struct AccountedBody {
    body: Body,
    _memory: MemoryHold,
}

impl HttpBody for AccountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
