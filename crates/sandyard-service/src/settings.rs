//! The operator's settings for the lifecycle of sandboxes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sandyard_core::NetworkPolicy;
use sandyard_provider::Ready;

/// Settings of the service.
#[derive(Clone, PartialEq)]
pub struct ServiceSettings {
    /// The template of sandboxes at the default provider whose create names none; none for the provider's default.
    pub default_template: Option<String>,
    /// The names of the providers that templates are bound to, by template.
    pub template_providers: BTreeMap<String, String>,
    /// Names of the providers that are tried, in this order, if the first choice has no capacity or is unreachable.
    pub fallback: Vec<String>,
    /// Names of the providers that users who are not admins may use; none for all.
    pub user_providers: Option<Vec<String>>,
    /// Templates that such users may use besides those that this installation stores: names, in which `*` stands for any text.
    pub user_templates: Vec<String>,
    /// The timeout of a sandbox whose create sets none.
    pub default_timeout: Duration,
    /// The longest timeout that a create may set.
    pub max_timeout: Duration,
    /// How long a paused or stopped sandbox is kept before it is deleted; zero for no limit.
    pub retention: Duration,
    /// Most sandboxes of a user without a quota of its own; 0 for no limit.
    pub max_sandboxes_per_user: u32,
    /// Most sandboxes of this installation; 0 for no limit.
    pub max_sandboxes: u32,
    /// How long a command in the foreground may run if the request sets no timeout.
    pub command_timeout: Duration,
    /// The longest timeout that a request may set for a command in the foreground.
    pub max_command_timeout: Duration,
    /// Most bytes returned of a command's standard output and of its standard error, each, if the request sets no limit.
    pub output_bytes: usize,
    /// Most bytes of requests and answers in memory.
    pub memory_bytes: usize,
    /// How long an orphan must be seen before it is removed.
    pub orphan_grace: Duration,
    /// How long events and audit entries are kept.
    pub history: Duration,
    /// How many sandboxes of which templates are kept ready.
    pub ready: Vec<Ready>,
    /// How often the reconciler runs.
    pub reconcile_every: Duration,
    /// The network policy of a sandbox whose create sets none.
    pub default_network: NetworkPolicy,
    /// The key that seals secrets in the store; none if secrets cannot be stored.
    pub sealing_key: Option<[u8; 32]>,
    /// The folder of the command logs; none if output is not logged.
    pub log_folder: Option<PathBuf>,
    /// Most bytes of one sandbox's command log.
    pub log_bytes_per_sandbox: u64,
    /// Most bytes of all command logs.
    pub log_bytes: u64,
    /// The directory in which commands, relative paths, tools and terminals of every sandbox start; none for the defaults of each API.
    pub workdir: Option<String>,
    /// The size of a volume, in bytes.
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
            orphan_grace: Duration::from_secs(300),
            history: HOUR * 24 * 30,
            ready: Vec::new(),
            reconcile_every: Duration::from_secs(30),
            default_network: NetworkPolicy::default(),
            sealing_key: None,
            log_folder: None,
            workdir: None,
            log_bytes_per_sandbox: 64 << 20,
            log_bytes: 4 << 30,
            volume_size_bytes: 1 << 30,
        }
    }
}
