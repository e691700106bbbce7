//! The client of the tool server in a sandbox.
//!
//! | file | holds |
//! |---|---|
//! | `client` | sessions, lists and calls of tools |
//! | `answer` | reading answers, which are not trusted |
//! | `progress` | progress reports of a call |

mod answer;
mod client;
mod progress;

pub(crate) use answer::plain;
pub(crate) use client::ToolServer;
pub(crate) use progress::{Progress, ProgressReceiver, progress_channel};
