//! What an operator can set about the life of sandboxes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sandyard_core::NetworkPolicy;
use sandyard_provider::Ready;

/// Settings of the service.
#[derive(Clone, PartialEq)]
pub struct ServiceSettings {
    /// What sandboxes with the default provider start from when their maker does not say; none: the provider's choice.
    pub default_template: Option<String>,
    /// Which provider runs sandboxes of a template whose maker does not say: by template, the provider's name.
    pub template_providers: BTreeMap<String, String>,
    /// Names of the providers that are asked in turn when the first choice has no room or cannot be reached.
    pub fallback: Vec<String>,
    /// Names of the providers that users may choose, or fall back to, who are not admins; none: all.
    pub user_providers: Option<Vec<String>>,
    /// What such users may start from beside what this installation keeps: names with `*` for anything.
    pub user_templates: Vec<String>,
    /// How long a sandbox lives without activity when its maker does not say.
    pub default_timeout: Duration,
    /// The longest that can be asked for.
    pub max_timeout: Duration,
    /// How long a paused or stopped sandbox is kept before it is deleted; zero: for ever.
    pub retention: Duration,
    /// How many sandboxes a user may have, unless the user has a number of its own; 0: any number.
    pub max_sandboxes_per_user: u32,
    /// How many sandboxes there may be at all; 0: any number.
    pub max_sandboxes: u32,
    /// How long a command in the foreground may take when its caller does not say.
    pub command_timeout: Duration,
    /// The longest a caller may give a command in the foreground.
    pub max_command_timeout: Duration,
    /// Bytes kept of a command's standard output and of its standard error, each, unless the request asks for another number.
    pub output_bytes: usize,
    /// Bytes of requests and answers that may be held in memory at once.
    pub memory_bytes: usize,
    /// For how long an instance that its row does not mean is left alone.
    pub stranger_grace: Duration,
    /// How long events and audit are kept.
    pub history: Duration,
    /// How many sandboxes of which templates to keep ready.
    pub ready: Vec<Ready>,
    /// How often what should be is compared with what is.
    pub reconcile_every: Duration,
    /// What a sandbox may reach when its maker does not say.
    pub default_network: NetworkPolicy,
    /// Seals secrets in the store; none: no secret can be kept.
    pub sealing_key: Option<[u8; 32]>,
    /// The folder that keeps the output of commands; none: it is not kept.
    pub log_folder: Option<PathBuf>,
    /// Bytes of output kept of one sandbox.
    pub log_bytes_per_sandbox: u64,
    /// Bytes of output kept of all sandboxes.
    pub log_bytes: u64,
    /// How much fits into a volume.
    pub volume_size_bytes: u64,
}

impl fmt::Debug for ServiceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSettings")
            .field("default_template", &self.default_template)
            .field("template_providers", &self.template_providers)
            .field("fallback", &self.fallback)
            .field("default_timeout", &self.default_timeout)
            .field("default_network", &self.default_network)
            .field("has_sealing_key", &self.sealing_key.is_some())
            .finish_non_exhaustive()
    }
}

impl Default for ServiceSettings {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(3600);
        Self {
            default_template: None,
            template_providers: BTreeMap::new(),
            fallback: Vec::new(),
            user_providers: None,
            user_templates: Vec::new(),
            default_timeout: HOUR,
            max_timeout: HOUR * 24,
            retention: HOUR * 24 * 7,
            max_sandboxes_per_user: 100,
            max_sandboxes: 0,
            command_timeout: HOUR,
            max_command_timeout: HOUR * 24,
            output_bytes: 1 << 20,
            memory_bytes: 512 << 20,
            stranger_grace: Duration::from_secs(300),
            history: HOUR * 24 * 30,
            ready: Vec::new(),
            reconcile_every: Duration::from_secs(30),
            default_network: NetworkPolicy::default(),
            sealing_key: None,
            log_folder: None,
            log_bytes_per_sandbox: 64 << 20,
            log_bytes: 4 << 30,
            volume_size_bytes: 1 << 30,
        }
    }
}
