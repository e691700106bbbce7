//! The sandbox of the request at hand, for the line of the request in the log.

use std::cell::RefCell;

tokio::task_local! {
    static SANDBOX: RefCell<Option<String>>;
}

/// Notes it by its id, which replaces the name in the request. Outside a request nothing happens.
pub(crate) fn note_sandbox(id: &str) {
    let _ = SANDBOX.try_with(|cell| *cell.borrow_mut() = Some(id.to_owned()));
}

/// Handles a request. Also returns the sandbox that was noted.
pub(crate) async fn with_noted_sandbox<T>(request: impl Future<Output = T>) -> (T, Option<String>) {
    let noted = async {
        let response = request.await;
        (response, SANDBOX.with(RefCell::take))
    };
    SANDBOX.scope(RefCell::default(), noted).await
}
