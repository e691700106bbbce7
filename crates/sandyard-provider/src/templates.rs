//! Templates: what instances start from.

use std::pin::Pin;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncRead;

use crate::provider::Result;

/// The bytes of an archive that is being uploaded.
pub type ArchiveReader = Pin<Box<dyn AsyncRead + Send>>;

/// Templates of a provider.
#[async_trait]
pub trait Templates: Send + Sync + 'static {
    /// Lists templates. Requires [`can_manage_templates`](crate::Capabilities::can_manage_templates).
    async fn templates(&self) -> Result<Vec<TemplateInfo>>;

    /// Saves the files of an instance as a template. Requires [`can_snapshot`](crate::Capabilities::can_snapshot).
    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo>;

    /// Creates a template from a tar archive, compressed or not. Requires
    /// [`can_import_templates`](crate::Capabilities::can_import_templates).
    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo>;

    /// Removes a template. Its sandboxes live on. Requires [`can_manage_templates`](crate::Capabilities::can_manage_templates).
    async fn remove_template(&self, name: &str) -> Result<()>;

    /// Keeps this number of sandboxes ready for each template, where that makes creating faster; none for templates that are not
    /// listed. A template that does not exist (yet) is ignored.
    async fn keep_ready(&self, pool: &[Ready]) -> Result<()>;
}

/// One template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateInfo {
    /// Its name.
    pub name: String,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_ms: Option<i64>,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// A remark for people who list templates.
    pub note: Option<String>,
    /// Whether this installation created it. False for what others keep with the same provider, such as Docker images.
    #[serde(default)]
    pub is_ours: bool,
}

/// How many instances of a template to keep ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The template's name; `None` for the default template.
    pub template: Option<String>,
    /// Number of instances.
    pub count: usize,
}
