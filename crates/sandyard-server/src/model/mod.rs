//! What dialects have in common to read and to show: parts of requests, and views of sandboxes, templates, policies and providers.
//!
//! | file | holds |
//! |---|---|
//! | `command` | the command to run: a text for a shell, or a program and its arguments |
//! | `file_path` | `path` and `file_path`, two names of one field |
//! | `network` | network policies, read and shown |
//! | `provider` | providers: their capabilities and health |
//! | `sandbox` | sandboxes: status, details, limits |
//! | `template` | templates |

pub(crate) mod command;
pub(crate) mod file_path;
pub(crate) mod network;
pub(crate) mod provider;
pub(crate) mod sandbox;
pub(crate) mod template;

use serde::Serialize;
use utoipa::ToSchema;

/// Confirmation that the operation succeeded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Done {
    /// Always `true`; a failed request has an error status instead.
    pub(crate) success: bool,
    /// Summary of the result for people.
    pub(crate) message: String,
}

impl Done {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            success: true,
            message: message.into(),
        }
    }
}
