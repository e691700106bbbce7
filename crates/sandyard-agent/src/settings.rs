//! Settings that the host may change while the agent runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use sandyard_wire::host::InitRequest;

use crate::config::{AgentConfig, DEFAULT_RING_BYTES, DEFAULT_USER};
use crate::egress::local_address;

/// The sandbox's current settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) default_user: String,
    pub(crate) default_workdir: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Variables that stay when an init request replaces the others.
    lasting_env: BTreeMap<String, String>,
    pub(crate) access_token: Option<String>,
    /// Whether TCP callers need a token even while none is set.
    pub(crate) needs_token: bool,
    pub(crate) oom_score_adj: Option<i32>,
    pub(crate) ring_bytes: usize,
    /// The proxy's address, if programs need one.
    pub(crate) proxy: Option<SocketAddr>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_user: DEFAULT_USER.to_owned(),
            default_workdir: None,
            env: BTreeMap::new(),
            lasting_env: BTreeMap::new(),
            access_token: None,
            needs_token: false,
            oom_score_adj: None,
            ring_bytes: DEFAULT_RING_BYTES,
            proxy: None,
        }
    }
}

impl Settings {
    /// Takes the settings out of a configuration.
    pub(crate) fn take(config: &mut AgentConfig) -> Self {
        let proxy = config
            .egress
            .as_ref()
            .and_then(|doors| doors.proxy.as_ref());
        let lasting_env = std::mem::take(&mut config.lasting_env);
        Self {
            default_user: std::mem::take(&mut config.default_user),
            default_workdir: config.default_workdir.take(),
            env: merged(&lasting_env, std::mem::take(&mut config.env)),
            lasting_env,
            access_token: config.access_token.take().filter(|token| !token.is_empty()),
            needs_token: config.needs_token,
            oom_score_adj: config.oom_score_adj,
            ring_bytes: config.ring_bytes,
            proxy: proxy.and_then(local_address),
        }
    }

    /// Applies the present fields of a request. A ready sandbox gets its owner's settings this way.
    pub(crate) fn apply(&mut self, request: InitRequest) {
        if let Some(env) = request.env_vars {
            self.env = merged(&self.lasting_env, env);
        }
        if let Some(token) = request.access_token {
            self.access_token = Some(token).filter(|token| !token.is_empty());
        }
        if let Some(user) = request.default_user.filter(|user| !user.is_empty()) {
            self.default_user = user;
        }
        if let Some(workdir) = request.default_workdir {
            self.default_workdir = Some(workdir).filter(|workdir| workdir.starts_with('/'));
        }
    }
}

/// Merges both; the second overrides the first.
fn merged(
    lasting: &BTreeMap<String, String>,
    env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = lasting.clone();
    all.extend(env);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_variables_outlive_an_init_request_that_does_not_name_them() {
        let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let mut config = AgentConfig {
            env: one("A", "first"),
            lasting_env: one("B", "lasting"),
            ..AgentConfig::default()
        };
        let mut settings = Settings::take(&mut config);
        assert_eq!(settings.env.len(), 2);
        settings.apply(InitRequest {
            env_vars: Some(one("C", "second")),
            ..InitRequest::default()
        });
        assert_eq!(settings.env.keys().collect::<Vec<_>>(), ["B", "C"]);
        settings.apply(InitRequest {
            env_vars: Some(one("B", "named")),
            ..InitRequest::default()
        });
        assert_eq!(settings.env, one("B", "named"));
    }

    #[test]
    fn an_init_request_changes_only_what_it_names() {
        let mut settings = Settings {
            access_token: Some("old".into()),
            ..Settings::default()
        };
        settings.apply(InitRequest {
            default_user: Some("root".into()),
            ..InitRequest::default()
        });
        assert_eq!(settings.default_user, "root");
        assert_eq!(settings.access_token.as_deref(), Some("old"));
        settings.apply(InitRequest {
            access_token: Some(String::new()),
            ..InitRequest::default()
        });
        assert_eq!(settings.access_token, None);
    }
}
