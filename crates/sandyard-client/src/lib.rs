//! Typed client of a Sandyard server: the native dialect, files, streams and accounts.
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
//! - [`Client`]: every operation, in `verbs/` with one file for each subject
//! - [`ClientError`]: errors, with the whole error response of the server
//! - [`Exec`]: a command with streamed input and output, over WebSocket
//! - [`Follow`]: streams of logs and events, resumed after a broken connection
//! - [`McpChannel`]: messages of the Model Context Protocol, forwarded unchanged
//! - [`Download`]: a streamed file or archive
//!
//! The client retries nothing, with two exceptions: [`Client::create`] sends an `Idempotency-Key`, so it tries again when the
//! connection failed; and [`Exec`] reconnects to its process, which is never started again. Redirects are not followed, since
//! the key must not be sent to another server.
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

/// Result with the error of this crate.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;
