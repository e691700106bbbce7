//! The destination of a connection: names and addresses, judged before they are used, and again when the grant changes.

use std::net::IpAddr;
use std::time::Duration;

use sandyard_core::network::Denial;

use super::{FlowTask, Stop};
use crate::dial::Destination;
use crate::gateway::Inner;
use crate::sandbox::Sandbox;

/// How long a look-up may take when the proxy can look the name up as well.
const PROXY_LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

impl FlowTask<'_> {
    /// Finds the addresses that may be dialled; looks a name up only after it was judged.
    pub(super) async fn destination(&self, address: Option<IpAddr>) -> Result<Destination, Stop> {
        let grant = self.sandbox.grant();
        let operator_rules = self.gateway.operator_rules();
        let (policy, port) = (&grant.policy, self.port);
        let Some(name) = self.flow.name.clone() else {
            let address = address.ok_or_else(|| Stop::Unreachable("no address".to_owned()))?;
            policy.judge_address(&operator_rules, None, address, port)?;
            return Ok(Destination {
                name: None,
                addresses: vec![address],
                port,
            });
        };
        policy.judge_name(&operator_rules, &name, Some(port))?;
        let look_up = self.gateway.names.addresses(&name);
        let addresses = if self.gateway.dialer.uses_resolving_proxy(&name, port) {
            // The proxy may know names that this host's DNS servers do not, and there may be no DNS server.
            let found = tokio::time::timeout(PROXY_LOOKUP_TIMEOUT, look_up).await;
            found.ok().and_then(Result::ok).unwrap_or_default()
        } else {
            let found = look_up.await;
            found.map_err(|error| Stop::Unreachable(format!("`{name}`: {error}")))?
        };
        let mut denial = None;
        let is_found = !addresses.is_empty();
        let allowed: Vec<_> = addresses
            .into_iter()
            .filter(|address| {
                match policy.judge_address(&operator_rules, Some(&name), *address, port) {
                    Ok(()) => true,
                    Err(reason) => {
                        denial.get_or_insert(reason);
                        false
                    }
                }
            })
            .collect();
        if let (Some(denial), true, true) = (denial, is_found, allowed.is_empty()) {
            return Err(Stop::Denied(denial));
        }
        Ok(Destination {
            name: Some(name),
            addresses: allowed,
            port,
        })
    }
}

/// Resolves when a change of the grant no longer allows what is open.
pub(super) async fn wait_for_denial(
    gateway: &Inner,
    sandbox: &Sandbox,
    mut changes: tokio::sync::watch::Receiver<u64>,
    name: Option<String>,
    address: Option<IpAddr>,
    port: u16,
) -> Denial {
    loop {
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        let (grant, operator_rules) = (sandbox.grant(), gateway.operator_rules());
        let by_name = name.as_deref().map_or(Ok(()), |name| {
            grant.policy.judge_name(&operator_rules, name, Some(port))
        });
        let judged = by_name.and_then(|()| match address {
            Some(address) => {
                grant
                    .policy
                    .judge_address(&operator_rules, name.as_deref(), address, port)
            }
            None => Ok(()),
        });
        if let Err(denial) = judged {
            return denial;
        }
    }
}
