//! Progress in the order in which it is told. The library handles each notice in a task of its own, so that the second may come
//! before the first, or after the answer.

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::connect::Listener;

/// A way to a server on which progress is heard as it comes along.
pub(super) struct InOrder<T> {
    pub(super) transport: T,
    pub(super) listener: Listener,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for InOrder<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await;
        if let Some(JsonRpcMessage::Notification(told)) = &message
            && let ServerNotification::ProgressNotification(told) = &told.notification
        {
            self.listener.hear(told.params.clone());
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
