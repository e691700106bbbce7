//! What can go wrong with templates, by what callers do about it.

use std::io;
use std::path::PathBuf;

/// Result of a template operation.
pub(crate) type Result<T, E = TemplateError> = std::result::Result<T, E>;

/// Failure of a template operation. Whatever it was building is gone again when it is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The name cannot be a template's.
    #[error(
        "`{name}` is not a template name: use 1 to 64 of a-z, 0-9, `.`, `_`, `-`, starting with a letter or digit"
    )]
    BadName {
        /// As given, shortened for display.
        name: String,
    },
    /// The name belongs to the template made from the host.
    #[error("template name `{name}` is reserved")]
    ReservedName {
        /// The name asked for.
        name: String,
    },
    /// A template of that name exists and was not to be replaced.
    #[error("template `{name}` exists already")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// A layer that a new template needs was swept in the meantime.
    #[error("layer `{}` is gone", layer.display())]
    LayerGone {
        /// The missing layer.
        layer: PathBuf,
    },
    /// An upper directory was given for a part the template does not have.
    #[error("template `{template}` has no part `{key}`")]
    UnknownPart {
        /// The template's name.
        template: String,
        /// The key asked for.
        key: String,
    },
    /// Another layer would make mounting slow or impossible.
    #[error(
        "part `{key}` would have {layers} layers, more than {limit}; import the sandbox's tree as a new template instead"
    )]
    TooManyLayers {
        /// The part.
        key: String,
        /// How many it would have.
        layers: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A tree or an archive is larger than allowed.
    #[error("more than {limit} {what}")]
    LimitExceeded {
        /// The exceeded limit.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
    },
    /// The archive is damaged, or not one at all.
    #[error("bad archive: {reason}")]
    BadArchive {
        /// What is wrong with it.
        reason: String,
    },
    /// A manifest cannot be understood.
    #[error("failed to read manifest `{}`", path.display())]
    Manifest {
        /// The manifest's file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A manifest was written by a later version.
    #[error("manifest `{}` has format {format_found}, this version reads {format_supported}", path.display())]
    ManifestFormat {
        /// The manifest's file.
        path: PathBuf,
        /// Its format.
        format_found: u32,
        /// What this version reads.
        format_supported: u32,
    },
    /// The progress callback asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The system refused something.
    #[error("failed to {action}")]
    Io {
        /// What was being done, with what.
        action: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

impl TemplateError {
    /// A damaged archive, with what is wrong about it.
    pub(crate) fn archive(reason: impl Into<String>) -> Self {
        Self::BadArchive {
            reason: reason.into(),
        }
    }
}

/// Says what was being done when the system refused.
pub(crate) trait OperationExt<T> {
    /// Wraps the error with "failed to `action`".
    fn operation(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> OperationExt<T> for Result<T, E> {
    fn operation(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| TemplateError::Io {
            action: action(),
            source: error.into(),
        })
    }
}
