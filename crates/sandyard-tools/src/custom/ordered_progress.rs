//! Delivers progress notifications in order. The library handles each one in its own task, so that the second may arrive before the
//! first, or after the answer.

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::connect::Listener;

/// A transport that delivers progress notifications as they arrive.
pub(super) struct OrderedProgress<T> {
    pub(super) transport: T,
    pub(super) listener: Listener,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for OrderedProgress<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await;
        if let Some(JsonRpcMessage::Notification(message)) = &message
            && let ServerNotification::ProgressNotification(progress) = &message.notification
        {
            self.listener.deliver(progress.params.clone());
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
