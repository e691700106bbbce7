//! The way out of a sandbox that no server looks after.

use std::net::IpAddr;

use clap::Args;
use sandyard_agent_client::Endpoint;
use sandyard_core::SandboxId;
use sandyard_core::network::{Flow, FlowVerdict, NetworkGrant, NetworkPolicy, Protocol, Target};
use sandyard_gateway::{Gateway, GatewaySettings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::args;
use crate::global::Global;
use crate::output;

/// Refusals that are told; a program that tries on and on has been told often enough.
const MOST_TOLD: usize = 20;

/// Failures that are told, each of them once: the program tells of them too, if not always why.
const MOST_FAILURES: usize = 5;

/// What a sandbox may reach.
#[derive(Debug, Args)]
pub(crate) struct WayOutArgs {
    /// Let it reach nothing but what --allow names
    #[arg(long)]
    no_internet: bool,
    /// Let it reach this, whatever else is denied: a name, *.name, address or network, with or without :port; may be repeated
    #[arg(long, value_name = "TARGET", value_parser = args::target)]
    allow: Vec<Target>,
    /// Do not let it reach this; may be repeated
    #[arg(long, value_name = "TARGET", value_parser = args::target)]
    deny: Vec<Target>,
}

impl WayOutArgs {
    fn policy(&self) -> NetworkPolicy {
        NetworkPolicy {
            allow_internet_access: !self.no_internet,
            allow_out: self.allow.clone(),
            deny_out: self.deny.clone(),
            ..NetworkPolicy::default()
        }
    }
}

/// A gateway of this process, for as long as it lives.
pub(crate) struct WayOut {
    gateway: Gateway,
    policy: NetworkPolicy,
    telling: JoinHandle<()>,
}

impl WayOut {
    /// Opens the gateway. To be done before the sandbox is made, which trusts the gateway's authority.
    pub(crate) fn open(global: &Global, args: &WayOutArgs) -> anyhow::Result<Self> {
        let folder = global.data_dir().join("gateway");
        let (gateway, flows) = Gateway::start(GatewaySettings::new(folder))?;
        Ok(Self {
            gateway,
            policy: args.policy(),
            telling: tokio::spawn(tell(flows)),
        })
    }

    /// Lets a sandbox out.
    pub(crate) fn attach(&self, id: &SandboxId, agent: &Endpoint) {
        let grant = NetworkGrant {
            sandbox_id: id.clone(),
            owner: String::new(),
            policy: self.policy.clone(),
            secrets: Vec::new(),
            is_leading: true,
        };
        self.gateway.attach(id.as_str(), agent.clone(), grant);
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        self.telling.abort();
    }
}

/// Tells what was denied and what failed, so that nobody has to guess why a program did.
async fn tell(mut flows: mpsc::Receiver<Flow>) {
    let mut telling = Telling::default();
    while let Some(flow) = flows.recv().await {
        if let Some(line) = telling.line(&flow) {
            output::note(output::visible(&line));
        }
    }
}

/// What has been told.
#[derive(Default)]
struct Telling {
    denials: usize,
    failures: Vec<String>,
}

impl Telling {
    /// What to tell of a flow, if anything.
    fn line(&mut self, flow: &Flow) -> Option<String> {
        match flow.verdict {
            FlowVerdict::Allowed => None,
            FlowVerdict::Denied => {
                let denial = flow.denial.as_ref()?;
                let is_told = self.denials < MOST_TOLD;
                self.denials += usize::from(is_told);
                is_told.then(|| format!("network: {denial}"))
            }
            FlowVerdict::Failed => {
                let line = failure(flow)?;
                let is_told = self.failures.len() < MOST_FAILURES && !self.failures.contains(&line);
                is_told.then(|| {
                    self.failures.push(line.clone());
                    line
                })
            }
        }
    }
}

/// Why a look-up or a connection failed.
fn failure(flow: &Flow) -> Option<String> {
    let reason = flow.failure.as_ref()?;
    let host = match (&flow.name, flow.address) {
        (Some(name), _) => name.clone(),
        (None, Some(IpAddr::V6(address))) => format!("[{address}]"),
        (None, address) => address?.to_string(),
    };
    match flow.protocol {
        // Programs ask for names of addresses and services on the off chance, and do without.
        Protocol::Dns if host.ends_with(".arpa") || host.starts_with('_') => None,
        // Its own name is in its hosts file with an IPv4 address alone, so some ask for the other kind.
        Protocol::Dns if host == flow.sandbox_id.as_str() => None,
        Protocol::Dns => Some(format!("network: `{host}`: {reason}")),
        Protocol::Tcp => Some(match flow.port {
            Some(port) => format!("network: `{host}:{port}`: {reason}"),
            None => format!("network: `{host}`: {reason}"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sandyard_core::network::Denial;

    use super::*;

    fn flow(protocol: Protocol, name: &str) -> Flow {
        Flow {
            sandbox_id: SandboxId::from_random([1; 20]),
            owner: String::new(),
            at_ms: 1,
            duration_ms: 0,
            protocol,
            name: Some(name.to_owned()),
            address: None,
            port: (protocol == Protocol::Tcp).then_some(443),
            verdict: FlowVerdict::Failed,
            denial: None,
            failure: Some("no such name".to_owned()),
            sent_bytes: 0,
            received_bytes: 0,
            count: 1,
        }
    }

    #[test]
    fn failures_are_told_once_each_and_only_those_that_matter() {
        let mut telling = Telling::default();
        let mut told = |protocol, name| telling.line(&flow(protocol, name));
        let line = told(Protocol::Dns, "a.example").unwrap();
        assert_eq!(line, "network: `a.example`: no such name");
        assert_eq!(told(Protocol::Dns, "a.example"), None);
        assert_eq!(told(Protocol::Dns, "_http._tcp.a.example"), None);
        assert_eq!(told(Protocol::Dns, "1.2.0.192.in-addr.arpa"), None);
        let own = SandboxId::from_random([1; 20]);
        assert_eq!(told(Protocol::Dns, own.as_str()), None);
        let line = told(Protocol::Tcp, "a.example").unwrap();
        assert_eq!(line, "network: `a.example:443`: no such name");
        let went_out = Flow {
            verdict: FlowVerdict::Allowed,
            ..flow(Protocol::Tcp, "b.example")
        };
        assert_eq!(telling.line(&went_out), None);
    }

    #[test]
    fn denials_are_told_however_much_failed_and_not_for_ever() {
        let mut telling = Telling::default();
        let names = (0..30).map(|n| format!("{n}.example"));
        let failures = names.filter_map(|name| telling.line(&flow(Protocol::Dns, &name)));
        assert_eq!(failures.count(), MOST_FAILURES);
        let denied = Flow {
            verdict: FlowVerdict::Denied,
            denial: Some(Denial::NotAllowed {
                target: "a.example:443".to_owned(),
            }),
            ..flow(Protocol::Tcp, "a.example")
        };
        let lines: Vec<String> = (0..30).filter_map(|_| telling.line(&denied)).collect();
        assert_eq!(lines.len(), MOST_TOLD);
        assert_eq!(
            lines[0],
            "network: `a.example:443` is not in what this sandbox may reach"
        );
    }
}
