//! Hosts that the operator allows although their addresses are not public.

/// The operator's list: `host` allows the usual ports of a host, `host:port` exactly that one. Their addresses are not checked.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowList(Vec<String>);

impl AllowList {
    pub(super) fn new(hosts: &[String]) -> Self {
        Self(
            hosts
                .iter()
                .map(|host| host.trim().to_ascii_lowercase())
                .collect(),
        )
    }

    /// Says whether a host is on it, whatever the port.
    pub(super) fn has_host(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.0.iter().any(|entry| {
            *entry == name
                || entry
                    .rsplit_once(':')
                    .is_some_and(|(host, port)| host == name && port.parse::<u16>().is_ok())
        })
    }

    /// Says whether a host and port are on it.
    pub(super) fn has(&self, host: &str, port: u16) -> bool {
        let with_port = format!("{host}:{port}");
        self.0
            .iter()
            .any(|entry| *entry == with_port || (*entry == host && is_usual(port)))
    }
}

/// Says whether a port may serve files. Below 1024 are services that an HTTP request could misuse: mail, shells, printers.
pub(super) fn is_usual(port: u16) -> bool {
    port >= 1024 || port == 80 || port == 443
}
