//! A typed client of a Sandyard server: the native dialect, files, streams, accounts.
//!
//! ```no_run
//! # async fn example() -> Result<(), sandyard_client::ClientError> {
//! use sandyard_client::{Client, CreateSandbox, RunCommand};
//!
//! let client = Client::new("http://127.0.0.1:8100", None)?;
//! let sandbox = client.create(&CreateSandbox::default()).await?;
//! let result = client.run(&sandbox.sandbox_id, &RunCommand::shell("echo $((6*7))")).await?;
//! assert_eq!(result.stdout, "42\n");
//! client.delete(&sandbox.sandbox_id).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Client`]: every verb, one file a subject in `verbs/`
//! - [`ClientError`]: what the server said, whole
//! - [`Exec`]: a command with its input and output as they happen, over WebSocket
//! - [`Follow`]: logs and events as they happen, over SSE, resumed after a cut
//! - [`McpChannel`]: messages of the Model Context Protocol, carried as they are
//! - [`Download`]: a file or folder on its way here
//!
//! Nothing is retried behind the caller's back, with two exceptions: [`Client::create`] always sends an `Idempotency-Key`,
//! so it may try again when the connection failed; and [`Exec`] reconnects to its process, which is never started again. Redirects are not followed, since a key must not travel with them.
#![forbid(unsafe_code)]

mod client;
mod download;
mod error;
mod exec;
mod follow;
mod mcp;
mod model;
mod request;
mod resolve;
mod sse;
mod tls;
mod verbs;

pub use client::{Client, ClientConfig};
pub use download::Download;
pub use error::{ApiError, ClientError, PartialOutput};
pub use exec::{
    AttachedProcess, Exec, ExecEvent, ExecInput, ExecOutput, ExecRequest, TerminalSize,
};
pub use follow::Follow;
pub use mcp::McpChannel;
pub use model::*;
pub use sse::{SseEvent, SseParser};
pub use verbs::FollowLogs;

/// A result of this crate.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;
