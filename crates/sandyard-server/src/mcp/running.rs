//! Calls under way, for those who cancel one by its number.
//!
//! A client that hangs up cancels its call wherever it runs. Clients of older versions of the protocol keep the connection and
//! send a notice beside it; that finds the call on the node that runs it, by the label the client was given when it began.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

/// Who calls, in which conversation, and the number of the call there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallName {
    /// Authenticated; so that nobody cancels what is somebody else's.
    pub(super) caller: String,
    /// The label of the conversation.
    pub(super) conversation: String,
    /// The number of the call.
    pub(super) id: RequestId,
}

/// Calls under way on this node. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Running(Arc<Mutex<HashMap<CallName, CancellationToken>>>);

/// A call under way; forgotten when dropped.
#[derive(Debug)]
pub(super) struct Entry {
    running: Running,
    name: Option<CallName>,
    /// Cancelled when the call is.
    pub(super) word: CancellationToken,
}

impl Running {
    /// Notes a call. One without a name cannot be cancelled by it.
    pub(super) fn begin(&self, name: Option<CallName>) -> Entry {
        let word = CancellationToken::new();
        if let Some(name) = &name {
            self.calls().insert(name.clone(), word.clone());
        }
        Entry {
            running: self.clone(),
            name,
            word,
        }
    }

    /// Cancels a call, if it is under way here.
    pub(super) fn cancel(&self, name: &CallName) {
        if let Some(word) = self.calls().get(name) {
            word.cancel();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallName, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.running.calls().remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_call_that_is_named_is_cancelled() {
        let running = Running::default();
        let name = |caller: &str, conversation: &str, id| CallName {
            caller: caller.to_owned(),
            conversation: conversation.to_owned(),
            id: RequestId::Number(id),
        };
        let call = running.begin(Some(name("alice", "a", 1)));
        for other in [
            name("bob", "a", 1),
            name("alice", "b", 1),
            name("alice", "a", 2),
        ] {
            running.cancel(&other);
            assert!(!call.word.is_cancelled(), "{other:?}");
        }
        running.cancel(&name("alice", "a", 1));
        assert!(call.word.is_cancelled());
        drop(call);
        assert!(running.calls().is_empty());
    }
}
